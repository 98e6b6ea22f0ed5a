#pragma once
#include "kernels/backend.h"
#include "kernels/group_statistics.h"

namespace jigsaw::inline kernels {

/// The group statistics family as a backend implements it; gamma and running numbers come in float64. See
/// group_statistics.h.
class GroupStatisticsKernels {
 public:
  virtual ~GroupStatisticsKernels() = default;
  virtual void combine(Context& context, const Array& packed, std::span<const MomentsPart> parts,
                       GroupStatistics& whole) const;
  virtual void scales(Context& context, const GroupStatistics& statistics, const ChannelRange& channels,
                      double eps, const Array& gamma, ChannelScales& scales) const;
  virtual void gradient_sums(Context& context, const GroupStatistics& statistics,
                             const ChannelRange& channels, double eps, const Array& gamma, const Array& sums,
                             GroupSums& result) const;
  virtual void shifts(Context& context, const GroupStatistics& statistics, const ChannelRange& channels,
                      double eps, const Array& group_sums, double elements, GradientShifts& result) const;
  virtual void way_to_batch(Context& context, const Array& running, const Array& batch,
                            const ChannelRange& channels, double factor, Array& way) const;
};

template <>
const GroupStatisticsKernels& reference::kernels();
template <>
const GroupStatisticsKernels& cpu::kernels();
template <>
const GroupStatisticsKernels& cuda::kernels();

}  // namespace jigsaw::inline kernels
