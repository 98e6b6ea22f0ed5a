#pragma once
#include "kernels/backend.h"
#include "kernels/contraction.h"

namespace jigsaw::inline kernels {

/// The contraction family as a backend implements it. See contraction.h.
class ContractionKernels {
 public:
  virtual ~ContractionKernels() = default;
  /// c = Σ a·b, or c += Σ a·b; all extents fit.
  virtual void contract(Context& context, const ContractionSpec& spec, const Array& a, const Array& b,
                        Array& c, bool add) const;
  /// Keeping packed weights is a liberty, not a duty: these do nothing unless overridden.
  virtual void keep_packed(Context&, const Array&) const {}
  virtual void forget_packed_weights(Context&) const {}
};

template <>
const ContractionKernels& reference::kernels();
template <>
const ContractionKernels& cpu::kernels();
template <>
const ContractionKernels& cuda::kernels();

}  // namespace jigsaw::inline kernels
