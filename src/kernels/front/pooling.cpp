#include "kernels/pooling.h"

#include "base/error.h"
#include "base/text.h"
#include "kernels/field_extents.h"
#include "kernels/front/pooling_kernels.h"

namespace jigsaw::inline kernels {

namespace {

/// One operation for each point of each window.
double flops_of(const Pooling& pooling, const Array& y) {
  return static_cast<double>(y.count()) * static_cast<double>(pooling.window.extent.count());
}

/// Shape of y for x of this shape, once they are seen to fit.
Shape require_field(std::string_view kernel, const Pooling& pooling, const Shape& x) {
  if (x.rank() < 3 || x.rank() > 5) {
    throw ShapeError(concat(kernel, ": the field ", x, " should be [B, space…, C]"));
  }
  const Shape space = space_of(x);
  pooling.window.require_rank(kernel, space.rank());
  const Box& valid = pooling.valid;
  bool inside = valid.begin.rank() == space.rank() && valid.extent.rank() == space.rank();
  for (int dim = 0; inside && dim < space.rank(); ++dim) {
    inside = valid.begin[dim] >= 0 && valid.extent[dim] >= 0 && valid.end(dim) <= space[dim];
  }
  if (!inside)
    throw ShapeError(concat(kernel, ": the valid region ", valid, " should lie in the space ", space));
  return field_shape(x[0], pooling.window.places(space), x.back());
}

void require_result(std::string_view kernel, const Pooling& pooling, const Array& x, const Array& y) {
  require_same_shape(kernel, y.shape(), require_field(kernel, pooling, x.shape()));
  require_same_type(kernel, x, y);
}

/// Shape of dx for dy, once they are seen to fit.
Shape require_gradient(std::string_view kernel, const Pooling& pooling, const Array& dy, const Shape& space) {
  if (dy.rank() != space.rank() + 2) {
    throw ShapeError(concat(kernel, ": the gradient ", dy.shape(), " does not fit the space ", space));
  }
  const Shape x = field_shape(dy.shape()[0], space, dy.shape().back());
  require_same_shape(kernel, dy.shape(), require_field(kernel, pooling, x));
  return x;
}

}  // namespace

DType winner_type(const Window& window) {
  constexpr std::int64_t kExactInBfloat16 = 256;
  return window.extent.count() <= kExactInBfloat16 ? DType::kBfloat16 : DType::kFloat32;
}

void max_pool_forward_into(Context& context, const Pooling& pooling, const Array& x, Array& winners,
                           Array& y) {
  constexpr std::string_view kKernel = "max_pool_forward";
  require_result(kKernel, pooling, x, y);
  require_same_shape(kKernel, winners.shape(), y.shape());
  require(winners.dtype() == winner_type(pooling.window), "max_pool_forward: the winners' type is another");
  count_work(context, flops_of(pooling, y), {&x, &y, &winners});
  launch(context, x.dtype(), &PoolingKernels::max_forward, pooling, x, winners, y);
}

Array max_pool_forward(Context& context, const Pooling& pooling, const Array& x, Array& winners) {
  const Shape shape = require_field("max_pool_forward", pooling, x.shape());
  Array y(context, shape, x.dtype());
  winners = Array(context, shape, winner_type(pooling.window));
  max_pool_forward_into(context, pooling, x, winners, y);
  return y;
}

Array max_pool_backward(Context& context, const Pooling& pooling, const Array& dy, const Array& winners,
                        const Shape& space) {
  Array dx(context, require_gradient("max_pool_backward", pooling, dy, space), dy.dtype());
  require_same_shape("max_pool_backward", winners.shape(), dy.shape());
  require(winners.dtype() == winner_type(pooling.window),
          "max_pool_backward: the winners are of another window");
  count_work(context, static_cast<double>(dy.count()), {&dy, &winners, &dx});
  launch(context, dy.dtype(), &PoolingKernels::max_backward, pooling, dy, winners, dx);
  return dx;
}

void average_pool_forward_into(Context& context, const Pooling& pooling, const Array& x, Array& y) {
  require_result("average_pool_forward", pooling, x, y);
  count_work(context, flops_of(pooling, y), {&x, &y});
  launch(context, x.dtype(), &PoolingKernels::average_forward, pooling, x, y);
}

Array average_pool_forward(Context& context, const Pooling& pooling, const Array& x) {
  Array y(context, require_field("average_pool_forward", pooling, x.shape()), x.dtype());
  average_pool_forward_into(context, pooling, x, y);
  return y;
}

Array average_pool_backward(Context& context, const Pooling& pooling, const Array& dy, const Shape& space) {
  Array dx(context, require_gradient("average_pool_backward", pooling, dy, space), dy.dtype());
  count_work(context, flops_of(pooling, dy), {&dy, &dx});
  launch(context, dy.dtype(), &PoolingKernels::average_backward, pooling, dy, dx);
  return dx;
}

// What a backend lacks.
void PoolingKernels::max_forward(Context&, const Pooling&, const Array&, Array&, Array&) const {
  missing_kernel("max_pool_forward");
}
void PoolingKernels::max_backward(Context&, const Pooling&, const Array&, const Array&, Array&) const {
  missing_kernel("max_pool_backward");
}
void PoolingKernels::average_forward(Context&, const Pooling&, const Array&, Array&) const {
  missing_kernel("average_pool_forward");
}
void PoolingKernels::average_backward(Context&, const Pooling&, const Array&, Array&) const {
  missing_kernel("average_pool_backward");
}

}  // namespace jigsaw::inline kernels
