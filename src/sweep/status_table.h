#pragma once
#include <string>
#include <vector>

#include "sweep/run_list.h"
#include "sweep/run_status.h"

namespace jigsaw::inline sweep {

/// A run of a sweep and how it stands.
struct SweepRow {
  std::size_t index = 0;
  SweepRun run;
  RunStatus status;
};
std::vector<SweepRow> sweep_rows(const SearchSpace& space, const RunList& list);

/// The row whose run finished with the best metric; null when none did.
const SweepRow* best_row(const SearchSpace& space, const std::vector<SweepRow>& rows);

/// For people: counts by state, a row a run, the best one last.
std::string summary_text(const SearchSpace& space, const std::vector<SweepRow>& rows);
/// {"metric": …, "counts": {"finished": 3, …}, "best": name or null, "runs": [{index, name, set, state, …}]}
Json summary_json(const SearchSpace& space, const std::vector<SweepRow>& rows);
/// RFC 4180: index, name, state, exit_code, step, the metric, then a column for each key of the sweep.
std::string summary_csv(const SearchSpace& space, const std::vector<SweepRow>& rows);

}  // namespace jigsaw::inline sweep
