#include <span>
#include <type_traits>

#include "array/raw_memory.h"
#include "base/error.h"
#include "kernels/cuda/device.cuh"
#include "nccl/sums.h"

namespace jigsaw::inline nccl {

namespace {

template <typename T>
__device__ T combined(T a, T b, ReduceOp op) {
  if (op == ReduceOp::kSum) return a + b;
  if (op == ReduceOp::kMax) return a > b || a != a ? a : b;
  return a < b || a != a ? a : b;
}

/// One element: sums[l] is the one of depth l that has begun, of kDepth at most. They lie in registers, for
/// which they are is known when this is compiled; summands are fetched several at a time before they are
/// added.
template <typename T, int kDepth>
struct AddInOrder {
  static constexpr int kAtOnce = 4;

  const Summand* order;
  int summands, rank;
  std::int64_t count;
  const T* others;
  const T* own;
  std::int64_t piece, gap;  ///< between the pieces of `own`; 0: it is one
  T* sum;
  ReduceOp op;

  __device__ void operator()(std::int64_t i) const {
    const std::int64_t mine = gap == 0 ? i : i + i / piece * gap;
    T sums[kDepth];
    unsigned begun = 0;
    T value = 0;
    for (int first = 0; first < summands; first += kAtOnce) {
      T next[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        if (first + k < summands) next[k] = summand(order[first + k].rank, i, mine);
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        if (first + k >= summands) break;
        const int ends = order[first + k].ends;
        value = next[k];
#pragma unroll
        for (int level = 0; level < kDepth; ++level) {
          if (level > ends) break;
          if ((begun >> level & 1U) != 0) value = combined(sums[level], value, op);
          if (level == ends) sums[level] = value;
          begun = level == ends ? begun | 1U << level : begun & ~(1U << level);
        }
      }
    }
    sum[i] = value;
  }
  __device__ T summand(int of, std::int64_t i, std::int64_t mine) const {
    if (of == rank) return own[mine];
    return others[(rank >= 0 && of > rank ? of - 1 : of) * count + i];
  }
};

}  // namespace

DeviceOrder::DeviceOrder(Context& context, const SumOrder& order)
    : summands_(static_cast<int>(order.summands.size())), depth_(order.depth) {
  require(depth_ <= SumOrder::kMostDepth, "sums of so many ranks are nested deeper than kernels can");
  static_assert(sizeof(Summand) == sizeof(double));  // as which they travel
  table_ = Array(context, {summands_}, DType::kFloat64, Purpose::kWorkspace);
  context.runtime()->upload(context.stream(), std::as_bytes(std::span(order.summands)), table_.raw(), 1);
}

void DeviceOrder::add(Context& context, const Summands& summands, ReduceOp op, Array& sum) const {
  const auto run = [&](auto zero, auto depth) {
    using T = decltype(zero);
    const bool has_own = summands.own.defined();
    kernels::cuda::for_elements(
        context, sum.count(),
        AddInOrder<T, decltype(depth)::value>{
            reinterpret_cast<const Summand*>(table_.raw()), summands_, has_own ? summands.rank : -1,
            sum.count(), summands.others.data<T>(), has_own ? summands.own.data<T>() : nullptr,
            summands.piece, summands.stride - summands.piece, sum.data<T>(), op});
  };
  // Sums of 4, 16 and 64 ranks, and of any number.
  const auto run_by_depth = [&](auto zero) {
    if (depth_ <= 1) return run(zero, std::integral_constant<int, 1>());
    if (depth_ == 2) return run(zero, std::integral_constant<int, 2>());
    if (depth_ == 3) return run(zero, std::integral_constant<int, 3>());
    run(zero, std::integral_constant<int, SumOrder::kMostDepth>());
  };
  require(sum.dtype() != DType::kBfloat16, "bf16 arrays are not reduced");
  if (sum.dtype() == DType::kFloat32) return run_by_depth(0.0F);
  run_by_depth(0.0);
}

}  // namespace jigsaw::inline nccl
