#pragma once
#include <cstdint>

#include "parallel/planner.h"

namespace jigsaw::inline parallel {

/// A plan, and the work of finding it as a count that no machine changes: transfers whose cost was computed,
/// plus transitions between states of the search that were tried.
struct CountedPlan {
  Plan plan;
  std::int64_t looked_at = 0;
};
CountedPlan make_counted_plan(const Trace& trace, const MeshShape& mesh, const CostModel& model);

}  // namespace jigsaw::inline parallel
