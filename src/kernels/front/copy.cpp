#include "kernels/copy.h"

#include <algorithm>

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

void require_reach(std::string_view what, const Array& array, std::int64_t count) {
  if (!array.defined() || array.count() < count)
    throw ShapeError(concat("copy_boxes: the table reaches ", count, " elements of its ", what,
                            ", which has ", array.defined() ? array.count() : 0));
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

void copy_boxes(Context& context, const BoxTable& table, std::span<const Array> sources, Array& target,
                const ChannelChange& change) {
  if (sources.size() < table.sources() || sources.size() > BoxTable::kMostSources)
    throw ShapeError(
        concat("copy_boxes: the table reads ", table.sources(), " arrays, given are ", sources.size()));
  for (std::size_t i = 0; i < table.sources(); ++i) {
    if (table.reach(i) == 0) continue;
    require_reach("source", sources[i], table.reach(i));
    require_same_type("copy_boxes", sources[i], target);
  }
  require_reach("target", target, table.target_reach());
  if (table.channels() > 0) require_reach("factor", change.factor, table.channels());
  if (change.offset.defined()) require_reach("offset", change.offset, table.channels());
  const std::int64_t read = table.read(), written = table.written();
  context.tally().flops +=
      static_cast<double>(std::max<std::int64_t>(read - written, 0) + 2 * table.changed());
  context.tally().bytes += static_cast<double>((read + written) * size_of(target.dtype()));
  if (table.empty() || context.backend() == Backend::kMeta) return;
  launch(context, table.cells().moves ? DType::kFloat32 : target.dtype(), &CopyKernels::copy_boxes, table,
         sources, target, change);
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
void CopyKernels::copy_boxes(Context&, const BoxTable&, std::span<const Array>, Array&,
                             const ChannelChange&) const {
  missing_kernel("copy_boxes");
}
void CopyKernels::permute(Context&, const Array&, std::span<const int>, Array&) const {
  missing_kernel("permute");
}

}  // namespace jigsaw::inline kernels
