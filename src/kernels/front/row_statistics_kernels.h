#pragma once
#include "kernels/backend.h"
#include "kernels/row_statistics.h"

namespace jigsaw::inline kernels {

/// What ranks that share rows do with their numbers, as a backend implements it. See row_statistics.h.
class RowStatisticsKernels {
 public:
  virtual ~RowStatisticsKernels() = default;
  virtual void combine(Context& context, const Array& parts, std::span<const std::int64_t> lengths,
                       double eps, Centre centre, NormStatistics& whole) const;
  virtual void drop_mean_part(Context& context, Array& row_sums) const;
};

template <>
const RowStatisticsKernels& reference::kernels();
template <>
const RowStatisticsKernels& cpu::kernels();
template <>
const RowStatisticsKernels& cuda::kernels();

}  // namespace jigsaw::inline kernels
