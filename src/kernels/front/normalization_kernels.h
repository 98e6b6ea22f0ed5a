#pragma once
#include "kernels/backend.h"
#include "kernels/normalization.h"

namespace jigsaw::inline kernels {

/// The normalisation family as a backend implements it. See normalization.h. Gamma, beta and statistics come
/// in the accumulator type of x; beta, or both, may be undefined.
class NormalizationKernels {
 public:
  virtual ~NormalizationKernels() = default;
  virtual void row_moments(Context& context, const Array& x, Moments& moments) const;
  virtual void forward(Context& context, const Array& x, const Array& gamma, const Array& beta, double eps,
                       Centre centre, NormStatistics& statistics, Array& y) const;
  virtual void apply(Context& context, const Array& x, const Array& gamma, const Array& beta,
                     const NormStatistics& statistics, Array& y) const;
  /// `row_sums` undefined: of the rows held here, which are whole; about zero they have no part of the mean.
  virtual void backward(Context& context, const Array& dy, const Array& x, const Array& gamma,
                        const NormStatistics& statistics, Centre centre, const Array& row_sums,
                        std::int64_t c_total, NormGradients& gradients) const;
  virtual void row_sums(Context& context, const Array& dy, const Array& x, const Array& gamma,
                        const NormStatistics& statistics, Array& sums) const;
};

template <>
const NormalizationKernels& reference::kernels();
template <>
const NormalizationKernels& cpu::kernels();
template <>
const NormalizationKernels& cuda::kernels();

}  // namespace jigsaw::inline kernels
