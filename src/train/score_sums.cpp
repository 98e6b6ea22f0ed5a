#include "train/score_sums.h"

#include "array/transfer.h"
#include "kernels/copy.h"
#include "kernels/pointwise.h"

namespace jigsaw::inline train {

ScoreSums sum_scores(const Rank& rank, const Layout& layout, const ScoredStates& states,
                     const Array& weights) {
  const Box box = rank.box(layout);
  const SampleGroup group(rank.mesh, layout, box);
  const std::int64_t regions = weights.shape()[0], channels = layout.global.back();
  Array whole = filled(rank.context, {kScoreSums, group.samples, regions, channels}, DType::kFloat64, 0.0,
                       Purpose::kWorkspace);
  if (!box.empty()) {
    // A piece holds some of the channels of each of its samples.
    const Array own = score_sums(rank.context, states, weights);
    Box here = Box::whole(own.shape());
    here.begin[3] = box.begin[box.begin.rank() - 1];
    copy_box(rank.context, own, Box::whole(own.shape()), whole, here);
  }
  return {group, regions, channels, download_values(rank.context, sum_over(rank, group.other_points, whole))};
}

}  // namespace jigsaw::inline train
