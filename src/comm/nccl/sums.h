#pragma once
#include "array/array.h"
#include "array/context.h"
#include "comm/call.h"
#include "nccl/sum_order.h"

namespace jigsaw::inline nccl {

/// Summands on the device: those of all ranks one after the other, `own` in place of that of `rank`, for
/// which there is then no place among `others`. Equal counts and types, float32 or float64.
struct Summands {
  Array others;
  Array own;      ///< undefined: all are among the others
  int rank = -1;  ///< whose `own` is
  /// Where `own` is in pieces: elements of each, and from where one begins to where the next does.
  std::int64_t piece = 0, stride = 0;
};

/// An order where kernels can read it. Made once for a group: it waits for the context's stream.
class DeviceOrder {
 public:
  DeviceOrder(Context& context, const SumOrder& order);

  /// sum[i] = summands added in that order, in their type; one kernel, on the context's stream. A NaN in any
  /// wins over max and min.
  void add(Context& context, const Summands& summands, ReduceOp op, Array& sum) const;

 private:
  Array table_;
  int summands_, depth_;
};

}  // namespace jigsaw::inline nccl
