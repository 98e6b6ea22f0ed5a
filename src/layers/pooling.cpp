#include "layers/pooling.h"

#include "base/text.h"
#include "config/config.h"
#include "layers/limits.h"

namespace jigsaw::inline layers {

namespace {

template <typename Options>
void declare_pooling(Keys<Options>& keys) {
  const auto spatial = [] { return one_or_list<std::int64_t>(); };
  keys.add("kernel", &Options::kernel, spatial())
      .required()
      .range(1, kMostPoints)
      .doc("Points of the window, for all spatial axes or for each.");
  keys.add("stride", &Options::stride, spatial())
      .range(1, kMostPoints)
      .doc("Points between neighbouring windows; those of the window if none are given.");
  keys.add("padding", &Options::padding, spatial())
      .range(0, kMostPoints)
      .doc("Points added at both ends of each axis; at most half the window.");
  keys.add("padding_mode", &Options::padding_mode, edges_form())
      .not_empty()
      .idle_unless(here("padding").above(0))
      .doc("What they hold; \"zeros\" are no points for a maximum.");
  keys.add("ceil_mode", &Options::ceil_mode)
      .doc("Whether a last window may reach beyond the field, where there are no points.");
}

template <typename Options>
Window window_of(const LayerSite& site, const Options& options, const Extents& dilation) {
  return {per_dim(site, "kernel", options.kernel),
          per_dim(site, "stride", options.stride.empty() ? options.kernel : options.stride),
          per_dim(site, "dilation", dilation)};
}

/// Checked as torch checks it.
Shape padding_points(const LayerSite& site, const Window& window, const Extents& padding) {
  const Shape points = per_dim(site, "padding", padding);
  for (int dim = 0; dim < points.rank(); ++dim) {
    if (2 * points[dim] > window.extent[dim]) {
      site.error("padding", concat("must be at most half the kernel, ", window.extent[dim] / 2, ", and is ",
                                   points[dim]));
    }
  }
  return points;
}

/// Windows along each dim, as torch counts them.
FieldShape pooled(const LayerSite& site, const Window& window, const Padding& padding, bool ceil_mode) {
  FieldShape result = site.input;
  if (!ceil_mode) check_window(site, window, padding);
  for (int dim = 0; dim < result.space.rank(); ++dim) {
    const Ends& ends = padding.dims[static_cast<std::size_t>(dim)];
    const std::int64_t room = site.input.space[dim] + ends.low + ends.high - window.reach(dim);
    const std::int64_t stride = window.stride[dim];
    std::int64_t windows = room < 0 ? 1 : room / stride + 1;
    if (ceil_mode && room > 0 && room % stride != 0 && windows * stride < site.input.space[dim] + ends.low)
      ++windows;
    result.space[dim] = windows;
  }
  result.rows = {};  // they lie elsewhere, unless nothing changes
  return result;
}

template <typename Options>
Padding checked_padding(const LayerSite& site, const Window& window, const Options& options) {
  return padding_of(site, padding_points(site, window, options.padding), options.padding_mode);
}

}  // namespace

void declare(Keys<MaxPoolOptions>& keys) {
  declare_pooling(keys);
  keys.add("dilation", &MaxPoolOptions::dilation, one_or_list<std::int64_t>())
      .range(1, kMostPoints)
      .doc("Points between neighbouring points of the window.");
}

void declare(Keys<AveragePoolOptions>& keys) {
  declare_pooling(keys);
  keys.add("count_include_pad", &AveragePoolOptions::count_include_pad)
      .idle_unless(here("padding").above(0))
      .doc("Whether padding with zeros counts in the mean.");
}

PoolingLayer::PoolingLayer(const LayerSite& site, const MaxPoolOptions& options)
    : Layer(pooled(site, window_of(site, options, options.dilation),
                   checked_padding(site, window_of(site, options, options.dilation), options),
                   options.ceil_mode)),
      kind_(PoolingKind::kMax),
      window_(window_of(site, options, options.dilation)),
      padding_(checked_padding(site, window_, options)) {}

PoolingLayer::PoolingLayer(const LayerSite& site, const AveragePoolOptions& options)
    : Layer(pooled(site, window_of(site, options, {1}),
                   checked_padding(site, window_of(site, options, {1}), options), options.ceil_mode),
            site.input.crossing),
      kind_(PoolingKind::kAverage),
      window_(window_of(site, options, {1})),
      padding_(checked_padding(site, window_, options)) {
  bool padded = false, beyond = false;
  for (int dim = 0; dim < window_.extent.rank(); ++dim) {
    const Ends& ends = padding_.dims[static_cast<std::size_t>(dim)];
    const std::int64_t end = (output().space[dim] - 1) * window_.stride[dim] + window_.reach(dim);
    padded = padded || ends.low > 0;
    beyond = beyond || end > site.input.space[dim] + ends.low + ends.high;
  }
  count_padding_ = options.count_include_pad && padded;
  if (count_padding_ && beyond) {
    site.error("count_include_pad",
               "must be false where windows reach beyond the padding; or set ceil_mode to false");
  }
}

Variable PoolingLayer::run(Tape& tape, const Variable& x, const Variable& residual) const {
  return add_residual(tape, pooling(tape, x, kind_, window_, padding_, output().space, count_padding_),
                      residual);
}

void declare(Keys<GlobalAveragePoolOptions>&) {}

Variable GlobalAveragePool::run(Tape& tape, const Variable& x, const Variable& residual) const {
  return add_residual(tape, global_average(tape, x), residual);
}

}  // namespace jigsaw::inline layers
