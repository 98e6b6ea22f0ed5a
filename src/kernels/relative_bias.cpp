#include "kernels/relative_bias.h"

#include "base/error.h"
#include "base/text.h"
#include "kernels/backend.h"
#include "kernels/pointwise.h"

namespace jigsaw {

namespace {

std::int64_t table_rows(const Shape& window) {
  std::int64_t rows = 1;
  for (const std::int64_t extent : window) rows *= 2 * extent - 1;
  return rows;
}

/// Calls f(row of the table, index into [query, key]) for every pair of points of a window.
template <typename F>
void for_pairs(const Shape& window, const F& f) {
  const std::int64_t points = window.count();
  for (std::int64_t query = 0; query < points; ++query) {
    for (std::int64_t key = 0; key < points; ++key) {
      std::int64_t row = 0, stride = 1, q = query, k = key;
      for (int dim = window.rank() - 1; dim >= 0; --dim) {
        row += (q % window[dim] - k % window[dim] + window[dim] - 1) * stride;
        stride *= 2 * window[dim] - 1;
        q /= window[dim], k /= window[dim];
      }
      f(row, query * points + key);
    }
  }
}

void require_host(const Context& context) {
  if (context.backend() == Backend::kCuda) missing_kernel("relative_bias");
}

}  // namespace

Array relative_bias(Context& context, const Array& table, const Shape& window) {
  if (table.rank() != 2 || table.shape()[0] != table_rows(window)) {
    throw ShapeError(concat("relative_bias: the table ", table.shape(), " should have ", table_rows(window),
                            " rows for windows of ", window));
  }
  require_host(context);
  const std::int64_t heads = table.shape()[1], plane = window.count() * window.count();
  const Array wide = cast(context, table, accumulator_of(table.dtype()), Purpose::kWorkspace);
  Array bias(context, {heads, window.count(), window.count()}, wide.dtype());
  count_work(context, 0, {&wide, &bias});
  if (context.backend() == Backend::kMeta) return bias;
  visit(wide.dtype(), [&](auto zero) {
    using T = Accumulator<decltype(zero)>;
    for_pairs(window, [&](std::int64_t row, std::int64_t pair) {
      for (std::int64_t head = 0; head < heads; ++head) {
        bias.data<T>()[head * plane + pair] = wide.data<T>()[row * heads + head];
      }
    });
  });
  return bias;
}

Array relative_bias_backward(Context& context, const Array& dbias, const Shape& window) {
  require_host(context);
  const std::int64_t heads = dbias.shape()[0], plane = window.count() * window.count();
  require(dbias.dtype() != DType::kBfloat16, "relative_bias_backward: sums are f32 or f64");
  require_count("relative_bias_backward", "dbias", dbias, heads * plane);
  Array table = Array::zeros(context, {table_rows(window), heads}, dbias.dtype());
  count_work(context, static_cast<double>(dbias.count()), {&table, &dbias});
  if (context.backend() == Backend::kMeta) return table;
  visit(dbias.dtype(), [&](auto zero) {
    using T = Accumulator<decltype(zero)>;
    for_pairs(window, [&](std::int64_t row, std::int64_t pair) {
      for (std::int64_t head = 0; head < heads; ++head) {
        table.data<T>()[row * heads + head] += dbias.data<T>()[head * plane + pair];
      }
    });
  });
  return table;
}

}  // namespace jigsaw
