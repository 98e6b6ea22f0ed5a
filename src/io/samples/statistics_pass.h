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
  /// Called with a sentence when there is no pass.
  std::function<void(const std::string&)> tell;
  /// Folder of the statistics that runs of these files computed; empty: none are kept.
  std::filesystem::path cache;
  /// No data are read in whole: for statistics that are neither given nor kept stand mean 0 and deviation 1.
  bool spared = false;
};

/// In place of a pass that is spared: statistics that are known, mean 0 and deviations 1 of other channels,
/// whose number is told.
/// @param known  may be null.
Statistics spared_statistics(const StatisticsPass& pass, const std::vector<Channel>& channels, Time lead_time,
                             const Statistics* known);

/// The statistics in a file, which rank 0 reads. Collective.
/// @param folder  from which a relative name starts. @throws DataError
Statistics shared_statistics(const std::string& file, const std::filesystem::path& folder,
                             Communicator& communicator);

/// Calls `check` of statistics; its DataError then names the file and the key that it is from.
/// @param file  null where they are not from one.
void naming_statistics(const std::string* file, const std::function<void()>& check);

/// The statistics as a run before computed them of the same data, else computed now and kept for the next
/// (what stands for them where the pass is spared is not kept).
/// Collective; rank 0 touches the disk. What is kept and cannot be read is computed anew; a folder that
/// cannot be written is no error.
///
/// @param paths  of the files; each is known by its absolute name, size and time of change.
/// @param of     what else decides the result: fields, periods, ….
Statistics cached_statistics(const StatisticsPass& pass, const std::vector<std::string>& paths, Json of,
                             Communicator& communicator, const std::function<Statistics()>& compute);

}  // namespace jigsaw::inline samples
