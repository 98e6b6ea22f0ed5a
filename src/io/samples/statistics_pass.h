#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "config/json.h"
#include "samples/statistics.h"

namespace jigsaw::inline samples {

class SampleSource;

/// What goes with the pass over the training data that statistics may take.
struct StatisticsPass {
  /// Called once grid, channels and samples are known, before the pass, on all ranks: the place for checks
  /// that cost less. May throw on some of the ranks only if it agrees on that itself.
  std::function<void(const SampleSource&)> before;
  /// Called now and then with the part that is done, 0 to 1, of this rank's share.
  std::function<void(double)> progress;
  /// Called with a sentence when the pass is spared.
  std::function<void(const std::string&)> tell;
  /// Folder of the statistics that runs of these files computed; empty: none are kept.
  std::filesystem::path cache;
};

/// The statistics in a file, which rank 0 reads. Collective.
/// @param folder  from which a relative name starts. @throws DataError
Statistics shared_statistics(const std::string& file, const std::filesystem::path& folder,
                             Communicator& communicator);

/// The statistics as a run before computed them of the same data, else computed now and kept for the next.
/// Collective; rank 0 touches the disk. What is kept and cannot be read is computed anew; a folder that
/// cannot be written is no error.
///
/// @param paths  of the files; each is known by its absolute name, size and time of change.
/// @param of     what else decides the result: fields, periods, ….
Statistics cached_statistics(const StatisticsPass& pass, const std::vector<std::string>& paths, Json of,
                             Communicator& communicator, const std::function<Statistics()>& compute);

}  // namespace jigsaw::inline samples
