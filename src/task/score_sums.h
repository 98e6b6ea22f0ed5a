#pragma once
#include <vector>

#include "kernels/forecast_scores.h"
#include "task/loss.h"

namespace jigsaw::inline task {

/// Sums of several kinds over all points of the grid in regions, of the samples of a group; equal on every
/// rank of it. On the host.
struct RegionSums {
  SampleGroup group;
  std::int64_t regions = 0, channels = 0;  ///< channels of the whole field
  std::vector<double> all;                 ///< [kinds, samples, regions, channels]

  double at(std::int64_t kind, std::int64_t sample, std::int64_t region, std::int64_t channel) const {
    const std::int64_t row = (kind * group.samples + sample) * regions + region;
    return all[static_cast<std::size_t>(row * channels + channel)];
  }
};

/// Those of score_sums().
struct ScoreSums : RegionSums {
  double of(ScoreSum kind, std::int64_t sample, std::int64_t region, std::int64_t channel) const {
    return at(static_cast<std::int64_t>(kind), sample, region, channel);
  }
};

/// Waits for the device once, for these sums alone. Collective over the mesh.
/// @param states   pieces in `layout` [B, space…, C].
/// @param weights  f64 [regions, points] of the piece.
ScoreSums sum_scores(const Rank& rank, const Layout& layout, const ScoredStates& states,
                     const Array& weights);

/// Those of truth_ranks(), a kind for each rank, in the same way.
/// @param forecasts  of all members, as truth_ranks() takes them.
RegionSums sum_truth_ranks(const Rank& rank, const Layout& layout, const Array& forecasts, const Array& truth,
                           std::int64_t members, const Array& weights);

/// Those of exceedance_sums(), in the same way.
/// @param thresholds  of each one those of all channels of the whole field.
RegionSums sum_exceedances(const Rank& rank, const Layout& layout, const Array& forecasts, const Array& truth,
                           std::int64_t members, const std::vector<std::vector<double>>& thresholds,
                           const Array& weights);

}  // namespace jigsaw::inline task
