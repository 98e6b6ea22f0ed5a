#include <span>

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

/// One element: sums[l] is the one of depth l that has begun.
template <typename T>
struct AddInOrder {
  const Summand* order;
  int summands, depth, rank;
  std::int64_t count;
  const T* others;
  const T* own;
  std::int64_t piece, gap;  ///< between the pieces of `own`; 0: it is one
  T* sum;
  ReduceOp op;

  __device__ void operator()(std::int64_t i) const {
    const std::int64_t mine = gap == 0 ? i : i + i / piece * gap;
    T sums[SumOrder::kMostDepth];
    unsigned begun = 0;
    T value = 0;
    for (int s = 0; s < summands; ++s) {
      const Summand summand = order[s];
      const int place = rank >= 0 && summand.rank > rank ? summand.rank - 1 : summand.rank;
      value = summand.rank == rank ? own[mine] : others[place * count + i];
      for (int level = 0; level < depth; ++level) {
        if ((begun >> level & 1U) != 0) value = combined(sums[level], value, op);
        if (level >= summand.ends) {
          sums[level] = value;
          begun |= 1U << level;
          break;
        }
        begun &= ~(1U << level);
      }
    }
    sum[i] = value;
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
  const auto run = [&](auto zero) {
    using T = decltype(zero);
    const bool has_own = summands.own.defined();
    kernels::cuda::for_elements(
        context, sum.count(),
        AddInOrder<T>{reinterpret_cast<const Summand*>(table_.raw()), summands_, depth_,
                      has_own ? summands.rank : -1, sum.count(), summands.others.data<T>(),
                      has_own ? summands.own.data<T>() : nullptr, summands.piece,
                      summands.stride - summands.piece, sum.data<T>(), op});
  };
  require(sum.dtype() != DType::kBfloat16, "bf16 arrays are not reduced");
  if (sum.dtype() == DType::kFloat32) return run(0.0F);
  run(0.0);
}

}  // namespace jigsaw::inline nccl
