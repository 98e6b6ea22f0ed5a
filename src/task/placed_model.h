#pragma once
#include <memory>
#include <string>
#include <vector>

#include "task/configuration.h"
#include "task/deep_supervision.h"
#include "task/device.h"
#include "task/forecaster.h"
#include "task/memory_need.h"
#include "task/objective.h"

namespace jigsaw::inline task {

/// What shows of a model and its mesh before statistics are known: whether the layers fit the grid, the mesh
/// the ranks, and what training (or else forecasts alone) takes at least the memory. Cheap.
/// @throws ConfigError
void check_placement(const Configuration& configuration, const SampleSource& data, Communicator& world,
                     const MemoryRoom& room, bool trains);

/// A block's path, what it does, and how.
struct BlockPlan {
  std::string path;
  PlanBook::Entry entry;
};

/// The model of a configuration on a mesh: its layers, their plans, and this rank's part of the parameters as
/// they are initialised. Over a communicator that records, with a context without memory, it is what one rank
/// of a larger job would hold.
class PlacedModel {
 public:
  /// @param objective  whose data the model is for.
  /// @param costs      by which blocks are planned: plan_costs() of a run.
  /// @param known      plans that blocks which are alike take, made on the same mesh by the same costs.
  /// @throws ConfigError
  PlacedModel(const Configuration& configuration, Objective& objective, Communicator& world,
              const CostModel& costs, const std::vector<BlockPlan>& known = {});
  PlacedModel(const PlacedModel&) = delete;
  PlacedModel& operator=(const PlacedModel&) = delete;

  Model& model() { return *model_; }
  const Model& model() const { return *model_; }
  const Mesh& mesh() const { return *mesh_; }
  const Rank& rank() const { return *rank_; }
  PlanBook& plans() { return plans_; }
  /// Those of all blocks, of rollouts, too.
  std::vector<BlockPlan> block_plans() const;
  /// Runs the model over as many leads as the configuration trains or validates.
  const Forecaster& forecaster() const { return *forecaster_; }
  /// The losses of the model's outputs together.
  const DeepSupervision& supervision() const { return *supervision_; }
  PrecisionTypes types() const { return types_; }
  /// Samples, over all ranks, that run at a time: train.batch_size / train.accumulate.
  std::int64_t samples() const { return samples_; }
  /// Forecasts that run at a time: of each sample one for each member of the ensemble.
  std::int64_t forecasts() const { return samples_ * members(); }
  std::int64_t members() const { return forecaster_->members(); }
  /// Where the predictions of so many samples stand when their members are compared, and what stands beside
  /// them once for each sample: see task/ensemble.h.
  Layout compared_layout(std::int64_t samples) const;
  Layout sample_layout(std::int64_t samples) const;
  /// Where this rank's piece of a batch of so many samples lies: of the inputs, and of what the loss
  /// compares with predictions.
  Box input_box(std::int64_t samples) const;
  Box target_box(const Loss& loss, std::int64_t samples) const;
  /// Ranks along each axis, and what is cut over `data` besides, for checkpoints.
  Json description() const;

 private:
  PrecisionTypes types_;
  Json zero_;  ///< as the configuration names it
  std::int64_t samples_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Mesh> mesh_;
  std::unique_ptr<Rank> rank_;
  PlanBook plans_;
  std::unique_ptr<Forecaster> forecaster_;
  std::unique_ptr<DeepSupervision> supervision_;
};

}  // namespace jigsaw::inline task
