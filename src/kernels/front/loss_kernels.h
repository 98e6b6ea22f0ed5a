#pragma once
#include "kernels/backend.h"
#include "kernels/loss.h"

namespace jigsaw::inline kernels {

/// The loss family as a backend implements it; what stands behind the sums comes in float64. See loss.h.
class LossKernels {
 public:
  virtual ~LossKernels() = default;
  virtual void sums(Context& context, const ErrorMeasure& measure, const Array& prediction,
                    const Array& target, const Array& weight, LossSums& sums) const;
  virtual void gradient(Context& context, const ErrorMeasure& measure, const Array& prediction,
                        const Array& target, const Array& weight, const Array& factor, Array& gradient) const;
  virtual void mean(Context& context, const LossSums& sums, const Array& weight, Array& mean) const;
  virtual void factors(Context& context, const Array& denominator, const Array& weight, double scale,
                       Array& factors) const;
  virtual void class_sums(Context& context, const Array& logits, const Array& labels, const Array& weight,
                          ClassSums& sums) const;
  virtual void class_gradient(Context& context, const Array& logits, const Array& labels, const Array& weight,
                              const Array& factors, Array& gradient) const;
  virtual void class_mean(Context& context, const ClassSums& sums, std::span<const ClassTerm> terms,
                          const Array& weight, Array& mean) const;
  virtual void class_factors(Context& context, const ClassSums& sums, std::span<const ClassTerm> terms,
                             const Array& weight, double scale, Array& factors) const;
};

template <>
const LossKernels& reference::kernels();
template <>
const LossKernels& cpu::kernels();
template <>
const LossKernels& cuda::kernels();

}  // namespace jigsaw::inline kernels
