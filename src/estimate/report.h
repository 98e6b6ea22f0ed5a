#pragma once
#include <string>

#include "config/json.h"
#include "estimate/mesh_search.h"

namespace jigsaw::inline estimate {

/// What `plan` found.
struct PlanReport {
  MeshAnswer answer;
  std::optional<PlannedMesh> configured;
  std::vector<RankEstimate> ranks;  ///< of `configured`, from rank 0 on
  int smallest = 0;                 ///< see smallest_ranks(); 0: not asked for, or none
  std::vector<std::string> explanations;
};

/// All of it, for programs. Bytes and seconds are of a step and of the rank that has most.
Json to_json(const MeshQuestion& question, const PlanReport& report);
/// The best meshes as a table, what goes along which axes on the first, and what was left out.
std::string to_text(const MeshQuestion& question, const PlanReport& report);

}  // namespace jigsaw::inline estimate
