#pragma once
#include "kernels/backend.h"
#include "kernels/pointwise.h"

namespace jigsaw::inline kernels {

/// The pointwise family as a backend implements it. See pointwise.h. Biases come in the accumulator type of
/// x.
class PointwiseKernels {
 public:
  virtual ~PointwiseKernels() = default;
  virtual void forward(Context& context, const PointwiseChain& chain, const Array& x, const Array& bias,
                       const Array& residual, Array& y) const;
  virtual void backward(Context& context, const PointwiseChain& chain, const Array& x, const Array& bias,
                        const Array& dy, Array& dx) const;
  virtual void sum_spread(Context& context, const Spread& spread, const Array& x, Array& sums) const;
  virtual void scale_spread(Context& context, const Spread& spread, const Array& x, const Array& factor,
                            Array& y) const;
  virtual void prelu(Context& context, const Spread& spread, const Array& x, const Array& slope,
                     Array& y) const;
  /// @param terms  set to what each element adds to its slope's gradient, in the accumulator type of x.
  virtual void prelu_backward(Context& context, const Spread& spread, const Array& dy, const Array& x,
                              const Array& slope, Array& dx, Array& terms) const;
  virtual void add(Context& context, const Array& a, const Array& b, Array& y) const;
  virtual void accumulate(Context& context, Array& into, const Array& x) const;
  virtual void scale(Context& context, Array& x, double factor) const;
  virtual void fill(Context& context, Array& y, double value) const;
  virtual void cast(Context& context, const Array& x, Array& y) const;
};

template <>
const PointwiseKernels& reference::kernels();
template <>
const PointwiseKernels& cpu::kernels();
template <>
const PointwiseKernels& cuda::kernels();

}  // namespace jigsaw::inline kernels
