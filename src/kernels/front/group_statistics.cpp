#include "kernels/group_statistics.h"

#include "base/error.h"
#include "base/text.h"
#include "kernels/front/group_statistics_kernels.h"
#include "kernels/pointwise.h"

namespace jigsaw::inline kernels {

namespace {

std::int64_t samples_of(const GroupStatistics& statistics) {
  return statistics.mean.shape()[0];
}

/// All numbers are few: the reference's loops are right for every host backend.
constexpr DType kAnywhere = DType::kFloat64;

Array wide(Context& context, const Array& numbers) {
  return cast(context, numbers, DType::kFloat64, Purpose::kWorkspace);
}

void require_range(std::string_view kernel, const GroupStatistics& statistics, const ChannelRange& channels) {
  const std::int64_t all = statistics.mean.shape()[1] * statistics.group_size;
  if (channels.first < 0 || channels.first + channels.count > all) {
    throw ShapeError(concat(kernel, ": channels ", channels.first, " to ", channels.first + channels.count,
                            " do not lie in the ", all, " of the statistics"));
  }
}

}  // namespace

GroupStatistics combine_channel_moments(Context& context, const Array& packed,
                                        std::span<const MomentsPart> parts, std::int64_t n,
                                        std::int64_t channels, std::int64_t group_size) {
  const Shape shape = {n, channels / group_size};
  GroupStatistics whole{Array(context, shape, DType::kFloat64), Array(context, shape, DType::kFloat64),
                        group_size};
  count_work(context, 8.0 * static_cast<double>(packed.count()), {&packed, &whole.mean, &whole.variance});
  launch(context, kAnywhere, &GroupStatisticsKernels::combine, packed, parts, whole);
  return whole;
}

GroupStatistics given_statistics(Context& context, const Array& mean, const Array& variance) {
  const Shape shape = {1, mean.count()};
  require_count("given_statistics", "the variance", variance, mean.count());
  return {wide(context, mean).reshaped(shape), wide(context, variance).reshaped(shape), 1};
}

ChannelScales channel_scales(Context& context, const GroupStatistics& statistics,
                             const ChannelRange& channels, double eps, const Array& gamma, DType dtype) {
  require_range("channel_scales", statistics, channels);
  require_count("channel_scales", "gamma", gamma, channels.count);
  const Shape shape = {samples_of(statistics), channels.count};
  ChannelScales scales{Array(context, shape, dtype, Purpose::kWorkspace),
                       Array(context, shape, dtype, Purpose::kWorkspace)};
  const Array wide_gamma = wide(context, gamma);
  count_work(context, 4.0 * static_cast<double>(shape.count()), {&scales.centre, &scales.factor});
  launch(context, kAnywhere, &GroupStatisticsKernels::scales, statistics, channels, eps, wide_gamma, scales);
  return scales;
}

GroupSums group_gradient_sums(Context& context, const GroupStatistics& statistics,
                              const ChannelRange& channels, double eps, const Array& gamma,
                              const Array& sums) {
  require_range("group_gradient_sums", statistics, channels);
  require_count("group_gradient_sums", "gamma", gamma, channels.count);
  const std::int64_t n = samples_of(statistics);
  require_count("group_gradient_sums", "the sums", sums, 2 * n * channels.count);
  GroupSums result{Array(context, {channels.count}, sums.dtype()),
                   Array(context, {channels.count}, sums.dtype()),
                   Array(context, {2, n, statistics.mean.shape()[1]}, DType::kFloat64, Purpose::kWorkspace)};
  const Array wide_gamma = wide(context, gamma);
  count_work(context, 6.0 * static_cast<double>(sums.count()), {&sums, &result.groups});
  launch(context, kAnywhere, &GroupStatisticsKernels::gradient_sums, statistics, channels, eps, wide_gamma,
         sums, result);
  return result;
}

GradientShifts gradient_shifts(Context& context, const GroupStatistics& statistics,
                               const ChannelRange& channels, double eps, const Array& group_sums,
                               double elements, DType dtype) {
  require_range("gradient_shifts", statistics, channels);
  require_count("gradient_shifts", "the sums of the groups", group_sums, 2 * statistics.mean.count());
  const Shape shape = {samples_of(statistics), channels.count};
  GradientShifts result{Array(context, shape, dtype, Purpose::kWorkspace),
                        Array(context, shape, dtype, Purpose::kWorkspace)};
  count_work(context, 6.0 * static_cast<double>(shape.count()), {&group_sums, &result.slope, &result.shift});
  launch(context, kAnywhere, &GroupStatisticsKernels::shifts, statistics, channels, eps, group_sums, elements,
         result);
  return result;
}

Array way_to_batch(Context& context, const Array& running, const Array& batch, const ChannelRange& channels,
                   double factor) {
  require_count("way_to_batch", "the running numbers", running, channels.count);
  if (channels.first < 0 || channels.first + channels.count > batch.count()) {
    throw ShapeError(concat("way_to_batch: channels from ", channels.first, " on do not lie in the ",
                            batch.count(), " of the batch"));
  }
  Array way(context, running.shape(), accumulator_of(running.dtype()));
  const Array wide_running = wide(context, running);
  count_work(context, 2.0 * static_cast<double>(way.count()), {&running, &way});
  launch(context, kAnywhere, &GroupStatisticsKernels::way_to_batch, wide_running, batch, channels, factor,
         way);
  return way;
}

// What a backend lacks.
void GroupStatisticsKernels::combine(Context&, const Array&, std::span<const MomentsPart>,
                                     GroupStatistics&) const {
  missing_kernel("combine_channel_moments");
}
void GroupStatisticsKernels::scales(Context&, const GroupStatistics&, const ChannelRange&, double,
                                    const Array&, ChannelScales&) const {
  missing_kernel("channel_scales");
}
void GroupStatisticsKernels::gradient_sums(Context&, const GroupStatistics&, const ChannelRange&, double,
                                           const Array&, const Array&, GroupSums&) const {
  missing_kernel("group_gradient_sums");
}
void GroupStatisticsKernels::shifts(Context&, const GroupStatistics&, const ChannelRange&, double,
                                    const Array&, double, GradientShifts&) const {
  missing_kernel("gradient_shifts");
}
void GroupStatisticsKernels::way_to_batch(Context&, const Array&, const Array&, const ChannelRange&, double,
                                          Array&) const {
  missing_kernel("way_to_batch");
}

}  // namespace jigsaw::inline kernels
