#include <cmath>

#include "kernels/front/group_statistics_kernels.h"
#include "kernels/reference/wide.h"

namespace jigsaw::inline kernels::reference {

namespace {

/// Statistics as numbers, seen from the channels that are here.
struct Known {
  Known(const GroupStatistics& statistics, const ChannelRange& range, double epsilon)
      : mean(widened(statistics.mean)),
        variance(widened(statistics.variance)),
        n(statistics.mean.shape()[0]),
        groups(statistics.mean.shape()[1]),
        group_size(statistics.group_size),
        channels(range),
        eps(epsilon) {}

  /// Of element i of [n, count].
  std::size_t group_of(std::int64_t i) const {
    return static_cast<std::size_t>(i / channels.count * groups +
                                    (channels.first + i % channels.count) / group_size);
  }
  double reciprocal_deviation(std::int64_t i) const { return 1.0 / std::sqrt(variance[group_of(i)] + eps); }
  std::int64_t count() const { return n * channels.count; }

  std::vector<double> mean, variance;
  std::int64_t n, groups, group_size;
  ChannelRange channels;
  double eps;
};

/// Fills an array [n, count] with f(i).
template <typename F>
void fill(Array& array, const F& f) {
  std::vector<double> values(static_cast<std::size_t>(array.count()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = f(static_cast<std::int64_t>(i));
  store(values, array);
}

class Groups : public GroupStatisticsKernels {
 public:
  void combine(Context&, const Array& packed, std::span<const MomentsPart> parts,
               GroupStatistics& whole) const override {
    const std::vector<double> numbers = widened(packed);
    const std::int64_t n = whole.mean.shape()[0], groups = whole.mean.shape()[1];
    const auto slots = static_cast<std::size_t>(n * groups);
    std::vector<double> counts(slots, 0.0), mean(slots, 0.0), variance(slots, 0.0);
    const double* part = numbers.data();
    for (const MomentsPart& each : parts) {
      const std::int64_t size = n * each.channels;
      const auto count = static_cast<double>(each.points);
      for (std::int64_t i = 0; i < size && each.points > 0; ++i) {
        const auto at = static_cast<std::size_t>(i / each.channels * groups +
                                                 (each.first + i % each.channels) / whole.group_size);
        const double delta = part[i] - mean[at], total = counts[at] + count;
        variance[at] += part[size + i] + delta * delta * counts[at] * count / total;
        mean[at] += delta * count / total;
        counts[at] = total;
      }
      part += 2 * size;
    }
    for (std::size_t at = 0; at < slots; ++at) {
      if (counts[at] > 0) variance[at] /= counts[at];
    }
    store(mean, whole.mean);
    store(variance, whole.variance);
  }

  void scales(Context&, const GroupStatistics& statistics, const ChannelRange& channels, double eps,
              const Array& gamma, ChannelScales& scales) const override {
    const Known known(statistics, channels, eps);
    const std::vector<double> gammas = widened(gamma);
    fill(scales.centre, [&](std::int64_t i) { return known.mean[known.group_of(i)]; });
    fill(scales.factor, [&](std::int64_t i) {
      return known.reciprocal_deviation(i) * gammas[static_cast<std::size_t>(i % channels.count)];
    });
  }

  void gradient_sums(Context&, const GroupStatistics& statistics, const ChannelRange& channels, double eps,
                     const Array& gamma, const Array& sums, GroupSums& result) const override {
    const Known known(statistics, channels, eps);
    const std::vector<double> gammas = widened(gamma), numbers = widened(sums);
    const auto width = static_cast<std::size_t>(channels.count),
               count = static_cast<std::size_t>(known.count());
    const std::size_t slots = known.mean.size();
    std::vector<double> dgamma(width, 0.0), dbeta(width, 0.0), groups(2 * slots, 0.0);
    for (std::size_t i = 0; i < count; ++i) {
      const auto number = static_cast<std::int64_t>(i);
      const double plain = numbers[i], product = numbers[count + i] * known.reciprocal_deviation(number);
      dbeta[i % width] += plain;
      dgamma[i % width] += product;
      const std::size_t at = known.group_of(number);
      groups[at] += gammas[i % width] * plain;
      groups[slots + at] += gammas[i % width] * product;
    }
    store(dgamma, result.dgamma);
    store(dbeta, result.dbeta);
    store(groups, result.groups);
  }

  void shifts(Context&, const GroupStatistics& statistics, const ChannelRange& channels, double eps,
              const Array& group_sums, double elements, GradientShifts& result) const override {
    const Known known(statistics, channels, eps);
    const std::vector<double> sums = widened(group_sums);
    const std::size_t slots = known.mean.size();
    fill(result.slope, [&](std::int64_t i) {
      const double rstd = known.reciprocal_deviation(i);
      return -rstd * rstd * (sums[slots + known.group_of(i)] / elements);
    });
    fill(result.shift, [&](std::int64_t i) {
      return -known.reciprocal_deviation(i) * (sums[known.group_of(i)] / elements);
    });
  }

  void way_to_batch(Context&, const Array& running, const Array& batch, const ChannelRange& channels,
                    double factor, Array& way) const override {
    const std::vector<double> here = widened(running), there = widened(batch);
    fill(way, [&](std::int64_t i) {
      return here[static_cast<std::size_t>(i)] - there[static_cast<std::size_t>(channels.first + i)] * factor;
    });
  }
};

}  // namespace

template <>
const GroupStatisticsKernels& kernels() {
  static const Groups instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::reference
