#pragma once
#include <optional>
#include <string>

#include "config/json.h"
#include "samples/sample_source.h"

namespace jigsaw::inline train {

/// What must be alike for a run to go on with the same batches: grid, channels (inputs, of which "inputs" is
/// the number, then targets), number of samples, digests of their times or places and of the statistics.
Json data_fingerprint(const SampleSource& data);
/// The first key in which two fingerprints differ, or "".
std::string first_difference(const Json& before, const Json& now);

/// Of the variables that two statistics have alike in transform and fill, the one that is normalised most
/// differently: "t2m: mean 281.2 and deviation 12.1 before, 279.9 and 10.4 now"; "" where none differs.
/// Means are compared in deviations of before, deviations by their ratio.
std::string largest_change(const Statistics& before, const Statistics& now);

/// In what training data differ from those of the run that wrote a checkpoint.
struct DataChange {
  std::string key;     ///< of the fingerprint, or "rows and columns"
  std::string detail;  ///< "120 before, 140 now"; "": there is nothing to be told
};
/// @param extra  of the checkpoint's manifest, with the fingerprint "data".
std::optional<DataChange> changed_data(const Json& extra, const SampleSource& data);

}  // namespace jigsaw::inline train
