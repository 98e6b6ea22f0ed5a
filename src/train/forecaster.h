#pragma once
#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "layers/model.h"
#include "samples/dataset.h"

namespace jigsaw::inline train {

/// A model and how its predictions go on as inputs: runs forecasts of several leads, each from the prediction
/// before it, with the forcings of its valid time.
///
/// The new input is a linear function of the old one, the prediction and the forcings: new = A·old +
/// present ∘ (B·prediction) + F, with A and B over channels. So it is cut and differentiated as every
/// contraction is. Batch::present leaves out predictions of what is missing at time 0.
class Forecaster {
 public:
  /// The paths of the blocks that rollouts add to the model's own.
  static constexpr std::array<const char*, 2> kBlocks = {"rollout.advance", "rollout.total"};

  /// @param rollout  most leads that will be asked for.
  /// @throws ConfigError when data.input_hours do not follow each other by the lead, so that a rollout is
  /// impossible.
  Forecaster(const Model& model, const Channels& channels, const Statistics& statistics, Predict predict,
             int lead_hours, int rollout);

  const Model& model() const { return model_; }
  /// Plans the blocks of rollouts; the model's own are planned with it.
  void plan(const Rank& rank, PlanBook& plans, std::int64_t samples) const;

  /// Calls `use(r, prediction)` for each lead r = 0 … of the batch's targets. The prediction is what
  /// targets[r] is compared with: the state, or the increment since time 0.
  void run(Tape& tape, const Batch& batch, std::int64_t samples,
           const std::function<void(int, const Variable&)>& use) const;

 private:
  struct Maps {
    Array old_to_new, prediction_to_new, carry;
  };
  Maps make_maps(Context& context, DType dtype) const;
  /// What the next input is made of; forcing and present as the batch has them.
  struct Step {
    Variable input, prediction, forcing, present;
  };
  Variable advance(Tape& tape, const Maps& maps, const Step& step) const;
  Variable total(Tape& tape, const Maps& maps, const Variable& before, const Variable& prediction) const;

  const Model& model_;
  Predict predict_;
  bool all_accumulate_ = true;
  int rollout_;
  // Entries (row, column, value) of A and B; 1 for target channels whose predictions add up over leads.
  struct Entry {
    std::int64_t row, column;
    double value;
  };
  std::vector<Entry> old_to_new_, prediction_to_new_, carry_;
};

}  // namespace jigsaw::inline train
