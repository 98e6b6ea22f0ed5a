#pragma once
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "samples/dataset.h"

namespace jigsaw::inline samples {

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

/// "above 340 K, where data.train holds 190 to 320 K".
std::string text_beyond(const Channel& channel, const FieldStatistics& field, const StateLimits& limits,
                        bool above);

/// Of each variable whose states lie beyond those limits, a sentence that names a file which may be in
/// another unit than it says: as far as a row of a few states shows, of which all values do. Of fields whose
/// statistics have no ends nothing is known. Collective; rank 0 reads, and has them.
/// @param periods  whose states are looked at. @throws AgreedError
std::vector<std::string> unit_warnings(Dataset& data, const std::vector<Period>& periods,
                                       Communicator& world);

}  // namespace jigsaw::inline samples
