#pragma once
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "samples/dataset.h"
#include "task/placed_model.h"

namespace jigsaw::inline predict {

/// Between which states of a channel are of the kind that a model was trained on, in the unit of the files.
struct StateLimits {
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
};

/// Of each target channel: from its least value in the training data less so many deviations to the largest
/// and as many more. Where `deviations` are not given these are five, or half the way from the least to the
/// largest value, if that is more. Statistics without ends, as of checkpoints before, have fifteen deviations
/// from the mean in their place, on the side of large values of what may be skewed as rain is (its mean is
/// above 0, and less than two deviations) 150. Of transforms other than linear ones one range more counts for
/// five deviations; of values that are not normalised nothing is known.
std::vector<StateLimits> state_limits(const Channels& channels, const Statistics& statistics,
                                      std::optional<double> deviations = {});

/// Finds where states of forecasts leave these limits first.
class OutsideRange {
 public:
  /// Where a channel did so.
  struct Found {
    std::int64_t channel = 0;
    int step = 0;
    Time start = 0;
    bool above = false;
  };

  explicit OutsideRange(std::vector<StateLimits> limits) : limits_(std::move(limits)) {}

  /// @param states  f64, this rank's piece in the layout of one field of each sample; NaN does not count.
  /// @param starts  of all samples. @return  whether any state of this piece lies outside.
  bool add(const Rank& rank, const Layout& layout, const Array& states, int step,
           std::span<const Time> starts);
  /// Of each channel that left its limits the earliest step, of that the earliest start; over all ranks.
  /// Collective.
  std::vector<Found> find(Communicator& world) const;
  /// A sentence for each variable of these. Collective.
  std::vector<std::string> remarks(const Dataset& data, Communicator& world) const;

 private:
  std::vector<StateLimits> limits_;
  std::map<std::int64_t, Found> found_;  ///< by channel
};

}  // namespace jigsaw::inline predict
