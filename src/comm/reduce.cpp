#include "comm/reduce.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace jigsaw {

namespace {

/// Elements summed at a time, so that the running sum stays in the first cache.
constexpr std::int64_t kBlock = 2048;

template <typename T, typename F>
void fold(std::span<const std::byte* const> pieces, std::int64_t count, std::byte* out, F combine) {
  T* const result = reinterpret_cast<T*>(out);
  for (std::int64_t first = 0; first < count; first += kBlock) {
    const std::int64_t last = std::min(count, first + kBlock);
    std::copy(reinterpret_cast<const T*>(pieces[0]) + first, reinterpret_cast<const T*>(pieces[0]) + last,
              result + first);
    for (const std::byte* piece : pieces.subspan(1)) {
      const T* const values = reinterpret_cast<const T*>(piece);
      for (std::int64_t i = first; i < last; ++i) result[i] = combine(result[i], values[i]);
    }
  }
}

template <typename T>
void reduce_typed(std::span<const std::byte* const> pieces, std::int64_t count, ReduceOp op, std::byte* out) {
  switch (op) {
    case ReduceOp::kSum:
      return fold<T>(pieces, count, out, [](T a, T b) { return a + b; });
    case ReduceOp::kMax:
      return fold<T>(pieces, count, out, [](T a, T b) { return a > b || a != a ? a : b; });
    case ReduceOp::kMin:
      return fold<T>(pieces, count, out, [](T a, T b) { return a < b || a != a ? a : b; });
  }
}

}  // namespace

void reduce_in_order(std::span<const std::byte* const> pieces, std::int64_t count, DType dtype, ReduceOp op,
                     std::byte* out) {
  if (dtype == DType::kFloat32) return reduce_typed<float>(pieces, count, op, out);
  if (dtype == DType::kFloat64) return reduce_typed<double>(pieces, count, op, out);
  throw CommError("bf16 arrays are not reduced; cast to fp32 first");
}

std::vector<std::int64_t> even_counts(std::int64_t count, int parts) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(parts), count / parts);
  for (std::int64_t i = 0; i < count % parts; ++i) ++counts[static_cast<std::size_t>(i)];
  return counts;
}

}  // namespace jigsaw
