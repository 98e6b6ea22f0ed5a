#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "estimate/machine_model.h"
#include "estimate/step_clock.h"
#include "task/placed_model.h"
#include "train/described_objective.h"
#include "train/step_count.h"

namespace jigsaw::inline estimate {

/// What one rank of a run holds, computes, sends and reads in a training step of the longest rollout.
/// Parameters, optimizer, activations and what is sent in a step are those of the run's summary.json to the
/// byte. Inputs, and so memory, include the batches read ahead; on a GPU the memory is the GPU's own, with
/// what hold_on_gpu() adds.
struct RankEstimate : StepCount {
  int rank = 0;
  Json coordinates;         ///< of its place in the mesh, by axis
  double file_bytes = 0;    ///< read in a step, 4 a value
  double samples_read = 0;  ///< of how many samples
  std::array<double, kCollectives> sent_bytes{};
  std::map<std::pair<std::string, Collective>, AxisTraffic> traffic;
  double compute_seconds = 0, stalled_seconds = 0, read_seconds = 0;
  double seconds = 0;  ///< of the step: the longer of computing with what is not hidden, and reading

  double total_sent_bytes() const;
};

/// What is estimated: one configuration on one mesh.
struct EstimatedRun {
  Configuration configuration;  ///< with an explicit mesh, or "auto"
  const DataDescription& data;
  const MachineModel& machine;
  int ranks;
};

/// The plans of a model's blocks on a mesh, for other estimates with as many samples at a time on it.
using KnownPlans = std::shared_ptr<const std::vector<BlockPlan>>;

/// Plans (unless `known` has the plans) and runs a step of one rank on shapes alone. May run on several
/// threads at once.
///
/// @param plans  if not null, where the plans are left.
/// @throws ConfigError  when the configuration does not fit so many ranks.
RankEstimate estimate_rank(const EstimatedRun& run, int rank, const KnownPlans& known = nullptr,
                           KnownPlans* plans = nullptr);

}  // namespace jigsaw::inline estimate
