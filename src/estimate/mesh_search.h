#pragma once
#include <optional>
#include <string>
#include <vector>

#include "estimate/model_work.h"

namespace jigsaw::inline estimate {

/// A mesh of the ranks with what is cut over `data`, recomputed and accumulated, and what a step takes.
struct PlannedMesh {
  MeshOptions mesh;
  Zero zero = Zero::kNone;
  Recompute recompute = Recompute::kNone;
  std::int64_t accumulate = 1;
  bool fits = true;    ///< whether a rank's memory is enough
  RankEstimate worst;  ///< each number is the largest of the ranks looked at
  KnownPlans plans;
};

/// What is asked for.
struct MeshQuestion {
  const Configuration& configuration;
  const DataDescription& data;
  const MachineModel& machine;
  int ranks = 1;
  std::int64_t memory_bytes = 0;  ///< of a rank; 0: no limit
  int threads = 1;
  /// Whether `zero`, `train.recompute` and `train.accumulate` are as configured even if that does not fit.
  bool as_configured = false;
  std::size_t kept = 10;  ///< how many of the fastest meshes are returned
};

struct MeshAnswer {
  /// By time of a step, those that fit first. Empty when none can be planned.
  std::vector<PlannedMesh> best;
  /// Meshes that were not planned, because their bounds show that they are slower or there are too many.
  std::vector<MeshBound> others;
  std::int64_t planned = 0;  ///< how many meshes were planned
  std::string refused;       ///< why the first mesh that could not be planned could not
};

/// The fastest meshes that fit: meshes are planned in the order of a guess until the bounds of the others
/// exceed the slowest kept; at most kMostPlanned. On each, the fastest choice of `zero` and `train.recompute`
/// that fits is taken, with as many parts of a batch as that needs, at least `train.accumulate`; without a
/// limit they are as configured. The answer does not depend on threads or time.
///
/// @throws ConfigError  when no mesh has so many ranks; it says which numbers of ranks some have.
MeshAnswer find_meshes(const MeshQuestion& question);

/// The configuration's own mesh, or what "auto" stands for, with its own choices; nothing when it needs
/// another number of ranks.
/// @param all_ranks  if not null, the estimates of all ranks up to kMostRanks (else of some).
std::optional<PlannedMesh> configured_mesh(const MeshQuestion& question,
                                           std::vector<RankEstimate>* all_ranks = nullptr);
inline constexpr int kMostRanks = 16;

/// The smallest number of ranks on which the question's limit is met; above 16 in steps of an eighth of the
/// power of two before; 0 when there is none up to 65,536.
int smallest_ranks(const MeshQuestion& question);

}  // namespace jigsaw::inline estimate
