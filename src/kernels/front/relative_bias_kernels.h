#pragma once
#include "kernels/backend.h"
#include "kernels/relative_bias.h"

namespace jigsaw::inline kernels {

/// What windows add to scores, as a backend implements it; tables come in the accumulator type. See
/// relative_bias.h.
class RelativeBiasKernels {
 public:
  virtual ~RelativeBiasKernels() = default;
  virtual void forward(Context& context, const Array& table, const Shape& window, Array& bias) const;
  virtual void backward(Context& context, const Array& dbias, const Shape& window, Array& table) const;
  virtual void wrap_mask(Context& context, const WrappedWindows& windows, Array& mask) const;
};

template <>
const RelativeBiasKernels& reference::kernels();
template <>
const RelativeBiasKernels& cpu::kernels();
template <>
const RelativeBiasKernels& cuda::kernels();

}  // namespace jigsaw::inline kernels
