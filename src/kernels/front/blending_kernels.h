#pragma once
#include "kernels/backend.h"
#include "kernels/blending.h"

namespace jigsaw::inline kernels {

/// The blending of windows as a backend implements it. See blending.h.
class BlendingKernels {
 public:
  virtual ~BlendingKernels() = default;
  virtual void add_weighted(Context& context, const Array& values, const Array& weights, const Box& of,
                            Array& target, const Box& to, unsigned mirrored) const;
};

template <>
const BlendingKernels& reference::kernels();
template <>
const BlendingKernels& cpu::kernels();
template <>
const BlendingKernels& cuda::kernels();

}  // namespace jigsaw::inline kernels
