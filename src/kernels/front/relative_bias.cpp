#include "kernels/relative_bias.h"

#include "base/error.h"
#include "base/text.h"
#include "kernels/front/relative_bias_kernels.h"
#include "kernels/pointwise.h"

namespace jigsaw::inline kernels {

namespace {

std::int64_t table_rows(const Shape& window) {
  std::int64_t rows = 1;
  for (const std::int64_t extent : window) rows *= 2 * extent - 1;
  return rows;
}

}  // namespace

Array relative_bias(Context& context, const Array& table, const Shape& window) {
  if (table.rank() != 2 || table.shape()[0] != table_rows(window)) {
    throw ShapeError(concat("relative_bias: the table ", table.shape(), " should have ", table_rows(window),
                            " rows for windows of ", window));
  }
  const std::int64_t heads = table.shape()[1];
  const Array wide = cast(context, table, accumulator_of(table.dtype()), Purpose::kWorkspace);
  Array bias(context, {heads, window.count(), window.count()}, wide.dtype());
  count_work(context, 0, {&wide, &bias});
  launch(context, wide.dtype(), &RelativeBiasKernels::forward, wide, window, bias);
  return bias;
}

Array relative_bias_backward(Context& context, const Array& dbias, const Shape& window) {
  const std::int64_t heads = dbias.shape()[0], plane = window.count() * window.count();
  require(dbias.dtype() != DType::kBfloat16, "relative_bias_backward: sums are f32 or f64");
  require_count("relative_bias_backward", "dbias", dbias, heads * plane);
  Array table(context, {table_rows(window), heads}, dbias.dtype());
  count_work(context, static_cast<double>(dbias.count()), {&table, &dbias});
  launch(context, dbias.dtype(), &RelativeBiasKernels::backward, dbias, window, table);
  return table;
}

std::int64_t WrappedWindows::windows() const {
  std::int64_t count = 1;
  for (int dim = 0; dim < window.rank(); ++dim) count *= piece.extent[dim] / window[dim];
  return count;
}

Array wrap_mask(Context& context, const WrappedWindows& windows, DType dtype) {
  const Shape& window = windows.window;
  bool fits = windows.wrapped.rank() == window.rank() && windows.space.rank() == window.rank() &&
              windows.piece.extent.rank() == window.rank();
  for (int dim = 0; fits && dim < window.rank(); ++dim) fits = windows.piece.extent[dim] % window[dim] == 0;
  if (!fits) {
    throw ShapeError(concat("wrap_mask: the piece ", windows.piece, " of ", windows.space,
                            " should be whole windows of ", window));
  }
  const std::int64_t points = window.count();
  Array mask(context, {windows.windows(), points, points}, accumulator_of(dtype), Purpose::kWorkspace);
  count_work(context, 0, {&mask});
  launch(context, mask.dtype(), &RelativeBiasKernels::wrap_mask, windows, mask);
  return mask;
}

// What a backend lacks.
void RelativeBiasKernels::forward(Context&, const Array&, const Shape&, Array&) const {
  missing_kernel("relative_bias");
}
void RelativeBiasKernels::backward(Context&, const Array&, const Shape&, Array&) const {
  missing_kernel("relative_bias_backward");
}
void RelativeBiasKernels::wrap_mask(Context&, const WrappedWindows&, Array&) const {
  missing_kernel("wrap_mask");
}

}  // namespace jigsaw::inline kernels
