#pragma once
#include "kernels/backend.h"
#include "kernels/ensemble.h"

namespace jigsaw::inline kernels {

/// The ensemble family as a backend implements it. See ensemble.h.
class EnsembleKernels {
 public:
  virtual ~EnsembleKernels() = default;
  virtual void member_inputs(Context& context, const Array& fields, const MemberBox& of,
                             const MemberNoise& noise, Array& inputs) const;
};

template <>
const EnsembleKernels& reference::kernels();
template <>
const EnsembleKernels& cpu::kernels();
template <>
const EnsembleKernels& cuda::kernels();

}  // namespace jigsaw::inline kernels
