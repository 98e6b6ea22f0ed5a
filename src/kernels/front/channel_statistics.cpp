#include "kernels/channel_statistics.h"

#include "base/error.h"
#include "base/text.h"
#include "kernels/front/channel_statistics_kernels.h"

namespace jigsaw::inline kernels {

namespace {

/// Operations an element is counted as.
constexpr double kMomentFlops = 5, kApplyFlops = 3, kSumFlops = 4, kGradientFlops = 5;

double elements(const Array& x) {
  return static_cast<double>(x.count());
}

/// [n, c] of x [n, points, c].
Shape channels_of(std::string_view kernel, const Array& x) {
  if (x.rank() != 3) throw ShapeError(concat(kernel, ": x ", x.shape(), " should be [n, points, c]"));
  return {x.shape()[0], x.shape()[2]};
}

/// Throws unless each is [n, c] in the type the kernel computes in.
void require_channels(std::string_view kernel, const Array& x, std::initializer_list<const Array*> all) {
  const Shape shape = channels_of(kernel, x);
  for (const Array* each : all) {
    require_count(kernel, "a number per channel", *each, shape.count());
    require(each->dtype() == accumulator_of(x.dtype()),
            "channel statistics: numbers per channel are f32, or f64 of f64 arrays");
  }
}

/// The map with its shift in the type the kernel computes in.
ChannelMap widened(Context& context, std::string_view kernel, const Array& x, ChannelMap map) {
  require_channels(kernel, x, {&map.centre, &map.factor});
  if (!map.shift.defined()) return map;
  require_count(kernel, "the shift", map.shift, x.shape()[2]);
  map.shift = cast(context, map.shift, accumulator_of(x.dtype()), Purpose::kWorkspace);
  return map;
}

}  // namespace

Moments channel_moments(Context& context, const Array& x) {
  const Shape shape = channels_of("channel_moments", x);
  const DType type = accumulator_of(x.dtype());
  Moments moments{Array(context, shape, type), Array(context, shape, type)};
  count_work(context, kMomentFlops * elements(x), {&x, &moments.mean, &moments.m2});
  launch(context, x.dtype(), &ChannelStatisticsKernels::moments, x, moments);
  return moments;
}

Array channel_apply(Context& context, const Array& x, const ChannelMap& map) {
  const ChannelMap wide = widened(context, "channel_apply", x, map);
  Array y(context, x.shape(), x.dtype());
  count_work(context, (kApplyFlops + flops_of(map.activation)) * elements(x), {&x, &y});
  launch(context, x.dtype(), &ChannelStatisticsKernels::apply, x, wide, y);
  return y;
}

Array channel_gradient_sums(Context& context, const Array& dy, const Array& x, const ChannelMap& map) {
  constexpr std::string_view kKernel = "channel_gradient_sums";
  require_same_shape(kKernel, dy.shape(), x.shape());
  require_same_type(kKernel, dy, x);
  const ChannelMap wide = widened(context, kKernel, x, map);
  Array sums(context, {2, x.shape()[0], x.shape()[2]}, accumulator_of(x.dtype()));
  count_work(context, (kSumFlops + flops_of(map.activation)) * elements(x), {&dy, &x, &sums});
  launch(context, x.dtype(), &ChannelStatisticsKernels::gradient_sums, dy, x, wide, sums);
  return sums;
}

Array channel_gradient(Context& context, const Array& dy, const Array& x, const ChannelMap& map,
                       const Array& b, const Array& c) {
  constexpr std::string_view kKernel = "channel_gradient";
  require_same_shape(kKernel, dy.shape(), x.shape());
  require_same_type(kKernel, dy, x);
  require_channels(kKernel, x, {&b, &c});
  const ChannelMap wide = widened(context, kKernel, x, map);
  Array dx(context, dy.shape(), dy.dtype());
  count_work(context, (kGradientFlops + flops_of(map.activation)) * elements(x), {&dy, &x, &dx});
  launch(context, x.dtype(), &ChannelStatisticsKernels::gradient, dy, x, wide, b, c, dx);
  return dx;
}

// What a backend lacks.
void ChannelStatisticsKernels::moments(Context&, const Array&, Moments&) const {
  missing_kernel("channel_moments");
}
void ChannelStatisticsKernels::apply(Context&, const Array&, const ChannelMap&, Array&) const {
  missing_kernel("channel_apply");
}
void ChannelStatisticsKernels::gradient_sums(Context&, const Array&, const Array&, const ChannelMap&,
                                             Array&) const {
  missing_kernel("channel_gradient_sums");
}
void ChannelStatisticsKernels::gradient(Context&, const Array&, const Array&, const ChannelMap&, const Array&,
                                        const Array&, Array&) const {
  missing_kernel("channel_gradient");
}

}  // namespace jigsaw::inline kernels
