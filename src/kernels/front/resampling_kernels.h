#pragma once
#include <vector>

#include "kernels/backend.h"
#include "kernels/resampling.h"

namespace jigsaw::inline kernels {

/// How one point of the target is made along one dim: (1 − share)·x[low] + share·x[high], both counted from
/// the source region's begin.
struct ResamplingTap {
  std::int64_t low = 0, high = 0;
  double share = 0;
};
/// Those of the target region along a dim, in order.
std::vector<ResamplingTap> resampling_taps(const Resampling& resampling, int dim);

/// The resampling family as a backend implements it; the regions fit. See resampling.h.
class ResamplingKernels {
 public:
  virtual ~ResamplingKernels() = default;
  virtual void forward(Context& context, const Resampling& resampling, const Array& x, Array& y) const;
  virtual void backward(Context& context, const Resampling& resampling, const Array& dy, Array& dx) const;
};

template <>
const ResamplingKernels& reference::kernels();
template <>
const ResamplingKernels& cpu::kernels();
template <>
const ResamplingKernels& cuda::kernels();

}  // namespace jigsaw::inline kernels
