#pragma once
#include "config/json.h"
#include "task/opened_run.h"

namespace jigsaw::inline report {

/// Which rank holds what, as placement.json of a run directory has it:
/// {"axes": [{"name": "data", "size": 1}, …], "ranks": 4, "space": [721, 1440],
///  "field": [[begin…], [extent…]] of [forecasts, space…, C] for each rank,
///  "parameters": [{"name": …, "shape": […], "layout": "[S(0), R]"}, …],
///  "stored": for each rank [[parameter, [begin…], [extent…], first, count], …]}: of that box of the
///  parameter,
/// row-major, so many elements from the first on. Of jobs of many ranks "stored" is null (kMostRanksShown).
/// Collective; whole on rank 0, null elsewhere.
Json placement_of(OpenedRun& run);

inline constexpr int kMostRanksShown = 64;

}  // namespace jigsaw::inline report
