#pragma once
#include <vector>

#include "kernels/forecast_scores.h"
#include "train/loss.h"

namespace jigsaw::inline train {

/// Sums of score_sums() over all points of the grid, of the samples of a group; equal on every rank of it. On
/// the host.
struct ScoreSums {
  SampleGroup group;
  std::int64_t regions = 0, channels = 0;  ///< channels of the whole field
  std::vector<double> all;                 ///< [kScoreSums, samples, regions, channels]

  double of(ScoreSum kind, std::int64_t sample, std::int64_t region, std::int64_t channel) const {
    const std::int64_t row = (static_cast<std::int64_t>(kind) * group.samples + sample) * regions + region;
    return all[static_cast<std::size_t>(row * channels + channel)];
  }
};

/// Waits for the device once, for these sums alone. Collective over the mesh.
/// @param states   pieces in `layout` [B, space…, C].
/// @param weights  f64 [regions, points] of the piece.
ScoreSums sum_scores(const Rank& rank, const Layout& layout, const ScoredStates& states,
                     const Array& weights);

}  // namespace jigsaw::inline train
