#include "array/raw_memory.h"
#include "kernels/cuda/constants.h"
#include "kernels/cuda/device.cuh"
#include "kernels/front/group_statistics_kernels.h"

namespace jigsaw::inline kernels::cuda {

namespace {

/// The channels that are here, [n, channels], and the groups that they belong to, [n, groups].
struct Groups {
  std::int64_t n, groups, group_size, first, channels;
  double eps;
  const double *mean, *variance;

  __device__ std::int64_t group_of(std::int64_t i) const {
    return i / channels * groups + (first + i % channels) / group_size;
  }
  __device__ double reciprocal_deviation(std::int64_t group) const {
    return 1.0 / sqrt(variance[group] + eps);
  }
};

Groups groups_of(const GroupStatistics& statistics, const ChannelRange& channels, double eps) {
  return {statistics.mean.shape()[0],
          statistics.mean.shape()[1],
          statistics.group_size,
          channels.first,
          channels.count,
          eps,
          statistics.mean.data<double>(),
          statistics.variance.data<double>()};
}

/// One group of one sample: what the ranks know of its channels, in rank order and that of channels.
struct CombineGroup {
  AnyElements packed;
  const MomentsPart* parts;
  std::int64_t ranks, n, groups, group_size;
  double *mean, *variance;

  __device__ void operator()(std::int64_t i) const {
    const std::int64_t sample = i / groups, first = i % groups * group_size;
    double all = 0, average = 0, m2 = 0;
    std::int64_t begin = 0;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const MomentsPart part = parts[rank];
      const std::int64_t size = n * part.channels;
      const auto count = static_cast<double>(part.points);
      for (std::int64_t channel = first; part.points > 0 && channel < first + group_size; ++channel) {
        const std::int64_t here = channel - part.first;
        if (here < 0 || here >= part.channels) continue;
        const std::int64_t at = begin + sample * part.channels + here;
        const double delta = packed.get<double>(at) - average, total = all + count;
        m2 += packed.get<double>(at + size) + delta * delta * all * count / total;
        average += delta * count / total;
        all = total;
      }
      begin += 2 * size;
    }
    mean[i] = average;
    variance[i] = all > 0 ? m2 / all : m2;
  }
};

struct Scales {
  Groups groups;
  const double* gamma;
  AnyElements centre, factor;
  __device__ void operator()(std::int64_t i) const {
    const std::int64_t group = groups.group_of(i);
    centre.put(i, groups.mean[group]);
    factor.put(i, groups.reciprocal_deviation(group) * gamma[i % groups.channels]);
  }
};

/// One channel's gradients of gamma and beta, over the samples.
struct ChannelGradients {
  Groups groups;
  AnyElements sums, dgamma, dbeta;
  __device__ void operator()(std::int64_t channel) const {
    double of_gamma = 0, of_beta = 0;
    for (std::int64_t sample = 0; sample < groups.n; ++sample) {
      const std::int64_t i = sample * groups.channels + channel;
      of_beta += sums.get<double>(i);
      of_gamma +=
          sums.get<double>(groups.n * groups.channels + i) * groups.reciprocal_deviation(groups.group_of(i));
    }
    dgamma.put(channel, of_gamma);
    dbeta.put(channel, of_beta);
  }
};

/// What the channels here give to one group of one sample.
struct GroupTotals {
  Groups groups;
  const double* gamma;
  AnyElements sums;
  double* totals;
  __device__ void operator()(std::int64_t group) const {
    const std::int64_t sample = group / groups.groups,
                       first = group % groups.groups * groups.group_size - groups.first;
    double plain = 0, product = 0;
    for (std::int64_t channel = first; channel < first + groups.group_size; ++channel) {
      if (channel < 0 || channel >= groups.channels) continue;
      const std::int64_t i = sample * groups.channels + channel;
      plain += gamma[channel] * sums.get<double>(i);
      product += gamma[channel] * sums.get<double>(groups.n * groups.channels + i);
    }
    totals[group] = plain;
    totals[groups.n * groups.groups + group] = product * groups.reciprocal_deviation(group);
  }
};

struct Shifts {
  Groups groups;
  const double* totals;
  double elements;
  AnyElements slope, shift;
  __device__ void operator()(std::int64_t i) const {
    const std::int64_t group = groups.group_of(i);
    const double rstd = groups.reciprocal_deviation(group);
    slope.put(i, -rstd * rstd * (totals[groups.n * groups.groups + group] / elements));
    shift.put(i, -rstd * (totals[group] / elements));
  }
};

struct WayToBatch {
  const double *running, *batch;
  double factor;
  AnyElements way;
  __device__ void operator()(std::int64_t i) const { way.put(i, running[i] - batch[i] * factor); }
};

class GroupNumbers : public GroupStatisticsKernels {
 public:
  void combine(Context& context, const Array& packed, std::span<const MomentsPart> parts,
               GroupStatistics& whole) const override {
    const std::int64_t n = whole.mean.shape()[0], groups = whole.mean.shape()[1];
    if (n * groups == 0) return;
    for_elements(
        context, n * groups,
        CombineGroup{any_elements(packed), constants(context, parts), static_cast<std::int64_t>(parts.size()),
                     n, groups, whole.group_size, whole.mean.data<double>(), whole.variance.data<double>()});
  }

  void scales(Context& context, const GroupStatistics& statistics, const ChannelRange& channels, double eps,
              const Array& gamma, ChannelScales& scales) const override {
    for_elements(context, scales.centre.count(),
                 Scales{groups_of(statistics, channels, eps), gamma.data<double>(),
                        any_elements(scales.centre), any_elements(scales.factor)});
  }

  void gradient_sums(Context& context, const GroupStatistics& statistics, const ChannelRange& channels,
                     double eps, const Array& gamma, const Array& sums, GroupSums& result) const override {
    const Groups groups = groups_of(statistics, channels, eps);
    for_elements(context, channels.count,
                 ChannelGradients{groups, any_elements(sums), any_elements(result.dgamma),
                                  any_elements(result.dbeta)});
    for_elements(context, groups.n * groups.groups,
                 GroupTotals{groups, gamma.data<double>(), any_elements(sums), result.groups.data<double>()});
  }

  void shifts(Context& context, const GroupStatistics& statistics, const ChannelRange& channels, double eps,
              const Array& group_sums, double elements, GradientShifts& result) const override {
    for_elements(context, result.slope.count(),
                 Shifts{groups_of(statistics, channels, eps), group_sums.data<double>(), elements,
                        any_elements(result.slope), any_elements(result.shift)});
  }

  void way_to_batch(Context& context, const Array& running, const Array& batch, const ChannelRange& channels,
                    double factor, Array& way) const override {
    for_elements(
        context, way.count(),
        WayToBatch{running.data<double>(), batch.data<double>() + channels.first, factor, any_elements(way)});
  }
};

}  // namespace

template <>
const GroupStatisticsKernels& kernels() {
  static const GroupNumbers instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::cuda
