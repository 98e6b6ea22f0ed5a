#pragma once
#include "kernels/backend.h"
#include "kernels/optimizer.h"

namespace jigsaw::inline kernels {

/// The optimizer family as a backend implements it. See optimizer.h.
class OptimizerKernels {
 public:
  virtual ~OptimizerKernels() = default;
  virtual void adamw(Context& context, const AdamwStep& step, std::span<const TrainedRun> runs,
                     Array& parameter, const Array& gradient, Array& moment1, Array& moment2) const;
  virtual void exponential_average(Context& context, double decay, Array& average,
                                   const Array& parameter) const;
  virtual void squares_of_runs(Context& context, std::span<const TrainedRun> runs, const Array& x,
                               Array& sum) const;
};

template <>
const OptimizerKernels& reference::kernels();
template <>
const OptimizerKernels& cpu::kernels();
template <>
const OptimizerKernels& cuda::kernels();

}  // namespace jigsaw::inline kernels
