#pragma once
#include "kernels/backend.h"
#include "kernels/convolution.h"

namespace jigsaw::inline kernels {

/// The convolution family as a backend implements it; all extents fit, and results are not empty. See
/// convolution.h. The bias comes in the accumulator type of x.
class ConvolutionKernels {
 public:
  virtual ~ConvolutionKernels() = default;
  virtual void forward(Context& context, const Convolution& convolution, const Array& x, const Array& weight,
                       const Array& bias, Array& y) const;
  virtual void backward_data(Context& context, const Convolution& convolution, const Array& dy,
                             const Array& weight, Array& dx) const;
  /// Adds to dw, or stores.
  virtual void backward_weight(Context& context, const Convolution& convolution, const Array& dy,
                               const Array& x, Array& dw, bool add) const;
};

template <>
const ConvolutionKernels& reference::kernels();
template <>
const ConvolutionKernels& cpu::kernels();
template <>
const ConvolutionKernels& cuda::kernels();

}  // namespace jigsaw::inline kernels
