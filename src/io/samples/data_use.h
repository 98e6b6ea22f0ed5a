#pragma once
#include <optional>
#include <string>

#include "grids/axis_map.h"
#include "samples/statistics_pass.h"

namespace jigsaw::inline samples {

/// How data are opened: for training as they are configured, or with what a trained model brings along.
struct DataUse {
  DataUse(StatisticsPass with = {}) : pass(std::move(with)) {}

  /// What goes with the pass over the data for statistics.
  StatisticsPass pass;
  /// Statistics to take instead of those that data.normalization says: what a model was trained with. Of
  /// fields that they lack, new ones are computed, and so are all for increments over another lead time.
  std::optional<Statistics> statistics;
  /// Whose rows and columns those of the data follow: of the grid that the model saw.
  std::optional<GridOrder> like;
  /// Whether data.train and data.valid must hold samples; where not, there are none of them.
  bool train = true, valid = true;
  /// Leads of the windows of data.valid; nothing: as many as those of data.train.
  std::optional<int> valid_rollout;
  /// Of the windows of data.valid that many at most, evenly spread from the first on; nothing: all.
  std::optional<int> most_valid;
  /// What errors call data.valid, where something else stands in its place.
  std::string valid_name = "data.valid";
};

}  // namespace jigsaw::inline samples
