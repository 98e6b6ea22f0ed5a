#include "kernels/convolution.h"

#include "base/error.h"
#include "base/text.h"
#include "kernels/field_extents.h"
#include "kernels/front/convolution_kernels.h"
#include "kernels/pointwise.h"

namespace jigsaw::inline kernels {

namespace {

/// Throws unless x is a field and its window fits its rank.
void require_field(std::string_view kernel, const Convolution& convolution, const Array& x) {
  if (x.rank() < 3 || x.rank() > 5) {
    throw ShapeError(concat(kernel, ": the field ", x.shape(), " should be [B, space…, C]"));
  }
  convolution.window.require_rank(kernel, x.rank() - 2);
  for (const Shape* ends : {&convolution.low, &convolution.high}) {
    if (ends->rank() == 0 || ends->rank() == x.rank() - 2) continue;
    throw ShapeError(concat(kernel, ": padding has ", ends->rank(), " entries for ", x.rank() - 2, " dims"));
  }
}

/// Throws unless groups divide the channels on both sides; no groups, no channels.
void require_groups(std::string_view kernel, const Convolution& convolution, std::int64_t in,
                    std::int64_t out) {
  const std::int64_t groups = convolution.groups;
  if (groups < 0 || (groups == 0 ? in + out > 0 : in % groups + out % groups > 0)) {
    throw ShapeError(
        concat(kernel, ": ", groups, " groups should divide ", in, " channels in and ", out, " out"));
  }
}

Shape weight_shape(const Convolution& convolution, std::int64_t in, std::int64_t out) {
  Shape shape{out, convolution.groups == 0 ? 0 : in / convolution.groups};
  for (const std::int64_t extent : convolution.window.extent) shape.append(extent);
  return shape;
}

/// Two operations for each channel pair of a group, point of the window and place.
double flops_of(const Convolution& convolution, const Array& y, std::int64_t in) {
  if (convolution.groups == 0) return 0;
  const std::int64_t group = in / convolution.groups;
  return 2.0 * static_cast<double>(y.count()) * static_cast<double>(group) *
         static_cast<double>(convolution.window.extent.count());
}

void run_backward_weight(Context& context, const Convolution& convolution, const Array& dy, const Array& x,
                         Array& dw, bool add) {
  count_work(context, flops_of(convolution, dy, x.shape().back()), {&dy, &x, &dw});
  if (add) count_work(context, 0, {&dw});
  if (dw.count() == 0) return;
  launch(context, x.dtype(), &ConvolutionKernels::backward_weight, convolution, dy, x, dw, add);
}

/// Shape of the weight once dy and x are seen to fit together.
Shape require_pair(std::string_view kernel, const Convolution& convolution, const Array& dy, const Array& x) {
  require_field(kernel, convolution, x);
  require_field(kernel, convolution, dy);
  require_same_type(kernel, dy, x);
  require_groups(kernel, convolution, x.shape().back(), dy.shape().back());
  require_same_shape(kernel, dy.shape(),
                     field_shape(x.shape()[0], convolution.places(space_of(x.shape())), dy.shape().back()));
  return weight_shape(convolution, x.shape().back(), dy.shape().back());
}

}  // namespace

Shape Convolution::places(const Shape& space) const {
  Shape padded = space;
  for (int dim = 0; dim < low.rank(); ++dim) padded[dim] += low[dim];
  for (int dim = 0; dim < high.rank(); ++dim) padded[dim] += high[dim];
  return window.places(padded);
}

namespace {

/// The shape of what a convolution gives.
Shape forward_shape(const Convolution& convolution, const Array& x, const Array& weight) {
  constexpr std::string_view kKernel = "convolution_forward";
  require_field(kKernel, convolution, x);
  require_same_type(kKernel, x, weight);
  const std::int64_t channels = weight.rank() > 0 ? weight.shape()[0] : 0;
  require_groups(kKernel, convolution, x.shape().back(), channels);
  require_same_shape(kKernel, weight.shape(), weight_shape(convolution, x.shape().back(), channels));
  return field_shape(x.shape()[0], convolution.places(space_of(x.shape())), channels);
}

}  // namespace

void convolution_forward_into(Context& context, const Convolution& convolution, const Array& x,
                              const Array& weight, const Array& bias, Array& y) {
  constexpr std::string_view kKernel = "convolution_forward";
  require_same_shape(kKernel, y.shape(), forward_shape(convolution, x, weight));
  if (bias.defined()) require_count(kKernel, "the bias", bias, y.shape().back());
  const Array wide_bias =
      bias.defined() ? cast(context, bias, accumulator_of(x.dtype()), Purpose::kWorkspace) : bias;
  count_work(context, flops_of(convolution, y, x.shape().back()), {&x, &weight, &y});
  if (y.count() == 0) return;
  launch(context, x.dtype(), &ConvolutionKernels::forward, convolution, x, weight, wide_bias, y);
}

Array convolution_forward(Context& context, const Convolution& convolution, const Array& x,
                          const Array& weight, const Array& bias, DType out) {
  Array y(context, forward_shape(convolution, x, weight), out);
  convolution_forward_into(context, convolution, x, weight, bias, y);
  return y;
}

Array convolution_backward_data(Context& context, const Convolution& convolution, const Array& dy,
                                const Array& weight, const Shape& space, DType out) {
  constexpr std::string_view kKernel = "convolution_backward_data";
  require_field(kKernel, convolution, dy);
  require_same_type(kKernel, dy, weight);
  const std::int64_t made = dy.shape().back(),
                     channels = weight.rank() > 1 ? weight.shape()[1] * convolution.groups : 0;
  require_groups(kKernel, convolution, channels, made);
  require_same_shape(kKernel, weight.shape(), weight_shape(convolution, channels, made));
  require_same_shape(kKernel, convolution.places(space), space_of(dy.shape()));
  Array dx(context, field_shape(dy.shape()[0], space, channels), out);
  count_work(context, flops_of(convolution, dy, channels), {&dy, &weight, &dx});
  if (dx.count() == 0) return dx;
  launch(context, dy.dtype(), &ConvolutionKernels::backward_data, convolution, dy, weight, dx);
  return dx;
}

Array convolution_backward_weight(Context& context, const Convolution& convolution, const Array& dy,
                                  const Array& x, DType out) {
  Array dw(context, require_pair("convolution_backward_weight", convolution, dy, x), out);
  run_backward_weight(context, convolution, dy, x, dw, false);
  return dw;
}

void convolution_backward_weight_add(Context& context, const Convolution& convolution, const Array& dy,
                                     const Array& x, Array& into) {
  require_same_shape("convolution_backward_weight_add", into.shape(),
                     require_pair("convolution_backward_weight_add", convolution, dy, x));
  require(into.dtype() != DType::kBfloat16,
          "convolution_backward_weight_add: sums are kept in fp32 or fp64, not in bf16");
  run_backward_weight(context, convolution, dy, x, into, true);
}

// What a backend lacks.
void ConvolutionKernels::forward(Context&, const Convolution&, const Array&, const Array&, const Array&,
                                 Array&) const {
  missing_kernel("convolution_forward");
}
void ConvolutionKernels::backward_data(Context&, const Convolution&, const Array&, const Array&,
                                       Array&) const {
  missing_kernel("convolution_backward_data");
}
void ConvolutionKernels::backward_weight(Context&, const Convolution&, const Array&, const Array&, Array&,
                                         bool) const {
  missing_kernel("convolution_backward_weight");
}

}  // namespace jigsaw::inline kernels
