#pragma once
#include "kernels/backend.h"
#include "kernels/channel_statistics.h"

namespace jigsaw::inline kernels {

/// The channel statistics family as a backend implements it; fields are [n, points, c], everything else comes
/// in the accumulator type of x. See channel_statistics.h.
class ChannelStatisticsKernels {
 public:
  virtual ~ChannelStatisticsKernels() = default;
  virtual void moments(Context& context, const Array& x, Moments& moments) const;
  virtual void apply(Context& context, const Array& x, const ChannelMap& map, Array& y) const;
  virtual void gradient_sums(Context& context, const Array& dy, const Array& x, const ChannelMap& map,
                             Array& sums) const;
  virtual void gradient(Context& context, const Array& dy, const Array& x, const ChannelMap& map,
                        const Array& b, const Array& c, Array& dx) const;
};

template <>
const ChannelStatisticsKernels& reference::kernels();
template <>
const ChannelStatisticsKernels& cpu::kernels();
template <>
const ChannelStatisticsKernels& cuda::kernels();

}  // namespace jigsaw::inline kernels
