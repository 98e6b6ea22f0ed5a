#include "kernels/copy.h"

#include "base/error.h"
#include "base/text.h"
#include "kernels/front/copy_kernels.h"

namespace jigsaw::inline kernels {

namespace {

void require_inside(std::string_view kernel, const Box& box, const Array& array) {
  bool inside = box.begin.rank() == array.rank() && box.extent.rank() == array.rank();
  for (int dim = 0; inside && dim < array.rank(); ++dim) {
    inside = box.begin[dim] >= 0 && box.extent[dim] >= 0 && box.end(dim) <= array.shape()[dim];
  }
  if (!inside)
    throw ShapeError(concat(kernel, ": the region ", box, " does not lie in the shape ", array.shape()));
}

void require_boxes(std::string_view kernel, const Array& source, const Box& from, const Array& target,
                   const Box& to) {
  require_inside(kernel, from, source);
  require_inside(kernel, to, target);
  require_same_shape(kernel, from.extent, to.extent);
  require_same_type(kernel, source, target);
}

/// Counts `passes` times the bytes of a region.
void count_box(Context& context, double flops, double passes, const Array& array, const Box& box) {
  context.tally().flops += flops;
  context.tally().bytes += passes * static_cast<double>(box.extent.count() * size_of(array.dtype()));
}

}  // namespace

void copy_box(Context& context, const Array& source, const Box& from, Array& target, const Box& to) {
  require_boxes("copy_box", source, from, target, to);
  count_box(context, 0, 2, source, from);
  if (from.empty()) return;
  launch(context, DType::kFloat32, &CopyKernels::copy_box, source, from, target, to);
}

Array extract_box(Context& context, const Array& source, const Box& from, Purpose purpose) {
  Array target(context, from.extent, source.dtype(), purpose);
  copy_box(context, source, from, target, Box::whole(from.extent));
  return target;
}

void add_box(Context& context, const Array& source, const Box& from, Array& target, const Box& to) {
  require_boxes("add_box", source, from, target, to);
  count_box(context, static_cast<double>(from.extent.count()), 3, source, from);
  if (from.empty()) return;
  launch(context, source.dtype(), &CopyKernels::add_box, source, from, target, to);
}

Array permute(Context& context, const Array& x, std::span<const int> order) {
  Shape shape;
  unsigned seen = 0;
  for (const int dim : order) {
    if (dim < 0 || dim >= x.rank() || (seen >> dim & 1U) != 0) break;
    seen |= 1U << dim;
    shape.append(x.shape()[dim]);
  }
  if (shape.rank() != x.rank() || order.size() != static_cast<std::size_t>(x.rank())) {
    throw ShapeError(concat("permute: ", join(order, ", "), " is not an order of the dims of ", x.shape()));
  }
  Array y(context, shape, x.dtype());
  count_work(context, 0, {&x, &y});
  if (y.count() == 0) return y;
  launch(context, DType::kFloat32, &CopyKernels::permute, x, order, y);
  return y;
}

// What a backend lacks.
void CopyKernels::copy_box(Context&, const Array&, const Box&, Array&, const Box&) const {
  missing_kernel("copy_box");
}
void CopyKernels::add_box(Context&, const Array&, const Box&, Array&, const Box&) const {
  missing_kernel("add_box");
}
void CopyKernels::permute(Context&, const Array&, std::span<const int>, Array&) const {
  missing_kernel("permute");
}

}  // namespace jigsaw::inline kernels
