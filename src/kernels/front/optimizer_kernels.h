#pragma once
#include "kernels/backend.h"
#include "kernels/optimizer.h"

namespace jigsaw::inline kernels {

/// The optimizer family as a backend implements it. See optimizer.h.
class OptimizerKernels {
 public:
  virtual ~OptimizerKernels() = default;
  virtual void decide(Context& context, const GradientTerms& terms, const Array& loss, const Array& squares,
                      Array& numbers) const;
  virtual void adamw(Context& context, const AdamwOptions& options, std::span<const TrainedRun> runs,
                     const Array& numbers, Array& parameter, const Array& gradient, Array& moment1,
                     Array& moment2, Array& copy) const;
  virtual void sgd(Context& context, const Momentum& momentum, std::span<const TrainedRun> runs,
                   const Array& numbers, Array& parameter, const Array& gradient, Array& velocity,
                   Array& copy) const;
  virtual void follow(Context& context, std::span<const TrainedRun> runs, const Array& numbers,
                      Array& statistic, const Array& gradient, Array& copy) const;
  virtual void exponential_average(Context& context, double decay, const Array& numbers, Array& average,
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
