#include "task/score_sums.h"

#include "array/transfer.h"
#include "kernels/copy.h"
#include "kernels/pointwise.h"

namespace jigsaw::inline task {

namespace {

/// @param of_piece  gives sums [kinds, samples, regions, channels] over the points of a piece that has some.
template <typename F>
RegionSums sum_regions(const Rank& rank, const Layout& layout, std::int64_t kinds, std::int64_t regions,
                       const F& of_piece) {
  const Box box = rank.box(layout);
  const SampleGroup group(rank.mesh, layout, box);
  const std::int64_t channels = layout.global.back();
  Array whole = filled(rank.context, {kinds, group.samples, regions, channels}, DType::kFloat64, 0.0,
                       Purpose::kWorkspace);
  if (!box.empty()) {
    // A piece holds some of the channels of each of its samples.
    const Array own = of_piece();
    Box here = Box::whole(own.shape());
    here.begin[3] = box.begin[box.begin.rank() - 1];
    copy_box(rank.context, own, Box::whole(own.shape()), whole, here);
  }
  return {group, regions, channels, download_values(rank.context, sum_over(rank, group.other_points, whole))};
}

}  // namespace

ScoreSums sum_scores(const Rank& rank, const Layout& layout, const ScoredStates& states,
                     const Array& weights) {
  return {sum_regions(rank, layout, kScoreSums, weights.shape()[0],
                      [&] { return score_sums(rank.context, states, weights); })};
}

RegionSums sum_truth_ranks(const Rank& rank, const Layout& layout, const Array& forecasts, const Array& truth,
                           std::int64_t members, const Array& weights) {
  return sum_regions(rank, layout, members + 1, weights.shape()[0],
                     [&] { return truth_ranks(rank.context, forecasts, truth, members, weights); });
}

RegionSums sum_exceedances(const Rank& rank, const Layout& layout, const Array& forecasts, const Array& truth,
                           std::int64_t members, const std::vector<std::vector<double>>& thresholds,
                           const Array& weights) {
  const Range here = range_of(rank.box(layout), layout.global.rank() - 1);
  std::vector<double> own;
  for (const std::vector<double>& of_channels : thresholds)
    own.insert(own.end(), of_channels.begin() + here.begin, of_channels.begin() + here.end);
  return sum_regions(rank, layout, std::ssize(thresholds) * 2 * (members + 1), weights.shape()[0],
                     [&] { return exceedance_sums(rank.context, forecasts, truth, members, own, weights); });
}

}  // namespace jigsaw::inline task
