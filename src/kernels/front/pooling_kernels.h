#pragma once
#include "kernels/backend.h"
#include "kernels/pooling.h"

namespace jigsaw::inline kernels {

/// The pooling family as a backend implements it; all extents fit. See pooling.h.
class PoolingKernels {
 public:
  virtual ~PoolingKernels() = default;
  virtual void max_forward(Context& context, const Pooling& pooling, const Array& x, Array& winners,
                           Array& y) const;
  virtual void max_backward(Context& context, const Pooling& pooling, const Array& dy, const Array& winners,
                            Array& dx) const;
  virtual void average_forward(Context& context, const Pooling& pooling, const Array& x, Array& y) const;
  virtual void average_backward(Context& context, const Pooling& pooling, const Array& dy, Array& dx) const;
};

template <>
const PoolingKernels& reference::kernels();
template <>
const PoolingKernels& cpu::kernels();
template <>
const PoolingKernels& cuda::kernels();

}  // namespace jigsaw::inline kernels
