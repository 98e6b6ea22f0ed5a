#pragma once
#include <string>
#include <vector>

#include "sweep/run_list.h"
#include "sweep/run_status.h"
#include "sweep/successive_halving.h"

namespace jigsaw::inline sweep {

/// A run of a sweep and how it stands.
struct SweepRow {
  std::size_t index = 0;
  SweepRun run;
  RunStatus status;
  /// By which runs are compared: the metric of one that finished; of successive halving that at the end of
  /// the last round to whose end any run came, of those that take part in it.
  std::optional<double> score;
};
/// @param rounds  of successive halving, else empty.
std::vector<SweepRow> sweep_rows(const SearchSpace& space, const RunList& list,
                                 const std::vector<HalvingRound>& rounds = {});

/// The row with the best score; null when none has one.
const SweepRow* best_row(const SearchSpace& space, const std::vector<SweepRow>& rows);

/// Sentences on runs that cannot be compared as they should.
std::vector<std::string> row_remarks(const SearchSpace& space, const std::vector<SweepRow>& rows);

/// For people: a row a run, counts by state, means over seeds where runs differ in them alone, the best one
/// last.
std::string summary_text(const SearchSpace& space, const std::vector<SweepRow>& rows);
/// {"metric": …, "counts": {"finished": 3, …}, "best": name or null, "runs": [{index, name, set, state, …}],
/// "over_seeds": [{set, runs, mean, deviation}]}
Json summary_json(const SearchSpace& space, const std::vector<SweepRow>& rows);
/// RFC 4180: index, name, state, exit_code, step, the metric, then a column for each key of the sweep; where
/// runs differ in their seed alone then seeds, mean and deviation of all that do so from this one.
std::string summary_csv(const SearchSpace& space, const std::vector<SweepRow>& rows);

}  // namespace jigsaw::inline sweep
