#pragma once
#include <cstdint>

#include "parallel/planner.h"

namespace jigsaw::inline parallel {

/// A plan, and what it took to find it whatever the machine: transfers whose cost was found, and steps that
/// were looked at from one state of the search to another.
struct CountedPlan {
  Plan plan;
  std::int64_t looked_at = 0;
};
CountedPlan make_counted_plan(const Trace& trace, const MeshShape& mesh, const CostModel& model);

}  // namespace jigsaw::inline parallel
