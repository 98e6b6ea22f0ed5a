#include "layers/convolution.h"

#include "base/text.h"
#include "config/config.h"
#include "layers/limits.h"

namespace jigsaw::inline layers {

namespace {

template <typename Options>
void declare_convolution(Keys<Options>& keys) {
  const auto spatial = [] { return one_or_list<std::int64_t>(); };
  keys.add("features", &Options::features).required().range(1, kMostChannels).doc("Channels of the result.");
  keys.add("kernel", &Options::kernel, spatial())
      .required()
      .range(1, kMostPoints)
      .doc("Points of the kernel, for all spatial axes or for each.");
  keys.add("stride", &Options::stride, spatial())
      .range(1, kMostPoints)
      .doc("Points between neighbouring places of the kernel.");
  keys.add("dilation", &Options::dilation, spatial())
      .range(1, kMostPoints)
      .doc("Points between neighbouring points of the kernel.");
  keys.add("groups", &Options::groups)
      .range(1, kMostChannels)
      .doc("Groups of channels that do not mix; as many as channels for a depthwise convolution.");
  keys.add("bias", &Options::bias).doc("Whether a learned bias is added.");
  declare_activation(keys, &Options::activation, "to the result");
}

void check_groups(const LayerSite& site, std::int64_t groups, std::int64_t features) {
  const std::int64_t channels = site.input.channels;
  if (channels % groups == 0 && features % groups == 0) return;
  std::int64_t fits = groups;
  while (channels % fits != 0 || features % fits != 0) --fits;
  site.error("groups", concat("must divide the ", channels, " channels and the ", features,
                              " features, and is ", groups, "; use ", fits));
}

Shape weight_shape(std::int64_t outer, std::int64_t inner, const Shape& kernel) {
  Shape shape{outer, inner};
  for (const std::int64_t extent : kernel) shape.append(extent);
  return shape;
}

/// @param dim  of input channels. With more of them, groups would hold others.
Variable weight_of(const LayerSite& site, const Shape& shape, Initial initial, std::int64_t groups, int dim) {
  return groups > 1 ? site.parameter("weight", shape, initial) : site.weight("weight", shape, initial, dim);
}

/// residual + activation(y + bias); bias and residual may be undefined.
Variable finish(Tape& tape, const Variable& y, const Variable& bias, const InnerActivation& activation,
                const Variable& residual) {
  const std::string letters = field_letters(y.shape().rank() - 2, 'n');
  return activation.run(tape, y, {letters, bias, bias.defined() ? "n" : "", residual}, 'n');
}

Window window_of(const LayerSite& site, const Extents& kernel, const Extents& stride,
                 const Extents& dilation) {
  return {per_dim(site, "kernel", kernel), per_dim(site, "stride", stride),
          per_dim(site, "dilation", dilation)};
}

FieldShape convolved(const LayerSite& site, const ConvolutionOptions& options) {
  const Window window = window_of(site, options.kernel, options.stride, options.dilation);
  const Shape points = per_dim(site, "padding", options.padding);
  check_window(site, window, padding_of(site, points, options.padding_mode, options.far_padding_mode));
  Shape padded = site.input.space;
  for (int dim = 0; dim < padded.rank(); ++dim) padded[dim] += 2 * points[dim];
  return {window.places(padded), options.features};
}

FieldShape spread(const LayerSite& site, const TransposedConvolutionOptions& options) {
  const Window window = window_of(site, options.kernel, options.stride, options.dilation);
  const Shape padding = per_dim(site, "padding", options.padding),
              more = per_dim(site, "output_padding", options.output_padding);
  Shape space = site.input.space;
  for (int dim = 0; dim < space.rank(); ++dim) {
    if (more[dim] >= std::max(window.stride[dim], window.dilation[dim])) {
      site.error("output_padding",
                 concat("must be below the stride or the dilation, at most ",
                        std::max(window.stride[dim], window.dilation[dim]) - 1, ", and is ", more[dim]));
    }
    space[dim] = (space[dim] - 1) * window.stride[dim] - 2 * padding[dim] + window.reach(dim) + more[dim];
    if (space[dim] < 1) {
      site.error("padding",
                 concat("leaves nothing of the result; use at most ", padding[dim] - (2 - space[dim]) / 2));
    }
  }
  if (options.size.empty()) return {space, options.features};
  const Shape size = per_dim(site, "size", options.size);
  for (int dim = 0; dim < space.rank(); ++dim) {
    if (size[dim] > space[dim])
      site.error("size", concat("must be at most ", space, ", which is all that is made"));
  }
  return {size, options.features};
}

}  // namespace

void declare(Keys<ConvolutionOptions>& keys) {
  declare_convolution(keys);
  keys.add("padding", &ConvolutionOptions::padding, one_or_list<std::int64_t>())
      .range(0, kMostPoints)
      .doc("Points added at both ends of each axis.");
  keys.add("padding_mode", &ConvolutionOptions::padding_mode, edges_form())
      .not_empty()
      .idle_unless(here("padding").above(0))
      .doc("What they hold, for all spatial axes or for each.");
  keys.add("zero_start", &ConvolutionOptions::zero_start)
      .doc("Whether weight and bias start at zero, so that the untrained layer gives nothing.");
}

ConvolutionLayer::ConvolutionLayer(const LayerSite& site, const ConvolutionOptions& options)
    : Layer(convolved(site, options)),
      window_(window_of(site, options.kernel, options.stride, options.dilation)),
      groups_(options.groups),
      padding_(padding_of(site, per_dim(site, "padding", options.padding), options.padding_mode,
                          options.far_padding_mode)),
      activation_(site.inner("activation", output()), options.activation, options.features) {
  check_groups(site, groups_, options.features);
  const Shape shape = weight_shape(options.features, site.input.channels / groups_, window_.extent);
  const Initial initial =
      options.zero_start ? Initial::constant(0) : Initial::fan_in(shape.count(1, shape.rank()));
  weight_ = weight_of(site, shape, initial, groups_, 1);
  if (options.bias) bias_ = site.parameter("bias", {options.features}, initial);
}

Variable ConvolutionLayer::run(Tape& tape, const Variable& x, const Variable& residual) const {
  // A pass that follows adds the bias at no cost; else the convolution does.
  const bool alone = activation_.none() && !residual.defined();
  const Variable y = convolution(tape, x, weight_, alone ? bias_ : Variable(), window_, groups_, padding_);
  return alone ? y : finish(tape, y, bias_, activation_, residual);
}

void declare(Keys<TransposedConvolutionOptions>& keys) {
  using O = TransposedConvolutionOptions;
  declare_convolution(keys);
  keys.add("padding", &O::padding, one_or_list<std::int64_t>())
      .range(0, kMostPoints)
      .doc("Points dropped at both ends of each axis of the result.");
  keys.add("output_padding", &O::output_padding, one_or_list<std::int64_t>())
      .range(0, kMostPoints)
      .doc("Points added at the far end of each axis of the result.");
  keys.add("size", &O::size, one_or_list<std::int64_t>())
      .range(1, kMostPoints)
      .doc("Points of the result, if not all of them, counted from the near end.");
}

TransposedConvolutionLayer::TransposedConvolutionLayer(const LayerSite& site,
                                                       const TransposedConvolutionOptions& options)
    : Layer(spread(site, options)),
      window_(window_of(site, options.kernel, options.stride, options.dilation)),
      groups_(options.groups),
      padding_(per_dim(site, "padding", options.padding)),
      activation_(site.inner("activation", output()), options.activation, options.features) {
  check_groups(site, groups_, options.features);
  const Shape shape = weight_shape(site.input.channels, options.features / groups_, window_.extent);
  const Initial initial = Initial::fan_in(shape.count(1, shape.rank()));
  weight_ = weight_of(site, shape, initial, groups_, 0);
  if (options.bias) bias_ = site.parameter("bias", {options.features}, initial);
}

Variable TransposedConvolutionLayer::run(Tape& tape, const Variable& x, const Variable& residual) const {
  const Variable y = transposed_convolution(tape, x, weight_, window_, groups_, padding_, output().space);
  return finish(tape, y, bias_, activation_, residual);
}

}  // namespace jigsaw::inline layers
