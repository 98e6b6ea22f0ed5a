#pragma once
#include <array>
#include <functional>
#include <vector>

#include "kernels/ensemble.h"
#include "layers/model.h"
#include "samples/dataset.h"
#include "task/configuration.h"

namespace jigsaw::inline task {

/// Where a rollout stands behind a lead, as it goes on from there: what the model was given, what it said,
/// and what that makes since time 0 (the prediction itself where states are predicted). What was brought to
/// an end of its range lies at that end (Clamped::kAtEnd). In the type that the tape computes in, [B·members,
/// space…, C].
struct RolloutState {
  Variable input, prediction, sum;
  /// In training the model's outputs beside the prediction (Model::sides()), as the model gives them.
  std::vector<Variable> sides = {};
};

/// Where Forecaster::run() leaves predictions that were brought to an end of their range: at the end, as far
/// as numbers of this type reach, as losses compare them; or far beyond it, where no rounding takes them
/// back, so that PhysicalStates::predicted(), which keeps the range to the last bit, gives exactly the end in
/// whatever precision, and by whatever kernels, the model ran. Forecasts go on from the end in either case.
enum class Clamped { kAtEnd, kFarBeyond };

/// A model and how its predictions go on as inputs: runs forecasts of several leads, each from the prediction
/// before it, with the forcings of its valid time.
///
/// The new input is a linear function of the old one, the prediction and the forcings: new = present ∘ (A·old
/// + B·prediction) + F, with A and B over channels. So it is cut and differentiated as every contraction is.
/// Batch::present leaves out what is missing at time 0, and the rim, where Batch::forcings holds the fields.
///
/// Of an ensemble each sample runs as often as it has members, one behind the other in the dim of samples.
/// The last channels of the model's input are then noise (kernels/ensemble.h), which comes anew at each lead,
/// with F. In training it is that of the step and of the sample in it; elsewhere of time 0 of the forecast,
/// so that a member is the same whatever other forecasts run beside it.
///
/// Where data.clamp gives ranges, the model's output is the prediction y' = y + max(0, low − s) −
/// max(0, s − high), with s the state that y leads to from the input, all in the units of y. So x + y', and
/// what goes on from it, lies in the range, and what lies beyond it has no gradient, as of torch.clamp.
class Forecaster {
 public:
  /// The paths of the blocks that rollouts and ranges add to the model's own.
  static constexpr std::array<const char*, 3> kBlocks = {"rollout.advance", "rollout.total", "output.clamp"};

  /// @param rollout  most leads that will be asked for.
  /// @throws ConfigError when data.input_hours do not follow each other by the lead, so that a rollout is
  /// impossible.
  Forecaster(const Model& model, const Channels& channels, const Statistics& statistics,
             const Configuration& configuration, int rollout);

  /// Whether rollouts are given anything at their leads: where not, batches hold no forcings.
  bool forced() const { return forced_; }
  const Model& model() const { return model_; }
  std::int64_t members() const { return ensemble_.members; }
  /// The part of a batch's fields that a rank's piece of the model's input is made of.
  Box data_box(const Mesh& mesh, std::int64_t samples) const;
  /// Plans the blocks of rollouts; the model's own are planned with it.
  void plan(const Rank& rank, PlanBook& plans, std::int64_t samples) const;

  /// Calls `use(r, prediction)` for each lead r = 0 … of the batch's rollout. The prediction is what
  /// batch.target(r) is compared with: the state, or the increment since time 0, of every member. Of a batch
  /// that comes lead by lead `use` brings lead r (Batch::go_on), whose forcing is taken behind it.
  /// @param earlier  a tape on which all leads but the last run, so that gradients do not flow through them;
  /// null where they run on the same one.
  void run(Tape& tape, const Batch& batch, std::int64_t samples,
           const std::function<void(int, const Variable&)>& use, Tape* earlier = nullptr,
           Clamped clamped = Clamped::kAtEnd) const;

  /// Is told what the rollout predicts for lead r since time 0, as Clamped says, and where it stands behind
  /// it; says whether it is to go on.
  using UseState = std::function<bool(int lead, const Variable& predicted, const RolloutState& state)>;
  /// The same from lead `first` on, as a rollout does that made the leads before it and stood in `state` then
  /// (nothing where `first` is 0): to the last bit on the same mesh with the same samples beside each other.
  /// Of a batch that comes lead by lead its present and lead `first` − 1 are there when it begins.
  void run(Tape& tape, const Batch& batch, std::int64_t samples, int first, RolloutState state,
           const UseState& use, Tape* earlier = nullptr, Clamped clamped = Clamped::kAtEnd) const;
  /// The channels of the input that a rollout of several leads takes over from lead to lead, ascending: all
  /// that RolloutState::input needs to hold.
  std::vector<int> carried_inputs() const;
  /// Whether RolloutState::sum is another value than its prediction.
  bool accumulates() const { return predict_ == Predict::kIncrement; }

 private:
  struct Maps {
    Array old_to_new, prediction_to_new, carry;
  };
  /// One end of the ranges of targets.
  struct Bound {
    bool low = false;
    std::vector<double> excess;  ///< bias [outputs]: the end, or less it, in the units of y
    std::vector<double> on;      ///< [outputs]: 1 for targets that have one
  };
  struct BoundArrays {
    Array from_input, from_prediction, bias, back;
  };
  MemberBox member_box(const Mesh& mesh, std::int64_t samples) const;
  MemberNoise noise_of(Tape& tape, const Batch& batch, const MemberBox& of, int lead) const;
  void add_ranges(const Channels& channels, const Statistics& statistics);
  Bound make_bound(const Channels& channels, const Statistics& statistics, bool low) const;
  std::vector<BoundArrays> make_bounds(Context& context, DType dtype, Clamped clamped) const;
  Variable clamp(Tape& tape, const std::vector<BoundArrays>& bounds, const Variable& input,
                 const Variable& prediction) const;
  Maps make_maps(Context& context, DType dtype) const;
  /// What the next input is made of; forcing, if there is one, and present as the batch has them.
  struct Step {
    Variable input, prediction, forcing, present;
  };
  Variable advance(Tape& tape, const Maps& maps, const Step& step) const;
  Variable total(Tape& tape, const Maps& maps, const Variable& before, const Variable& prediction) const;

  const Model& model_;
  Predict predict_;
  EnsembleOptions ensemble_;
  std::uint64_t seed_;
  bool all_accumulate_ = true;
  bool forced_;
  int rollout_;
  // Entries (row, column, value) of A and B; 1 for target channels whose predictions add up over leads.
  struct Entry {
    std::int64_t row, column;
    double value;
  };
  std::vector<Entry> old_to_new_, prediction_to_new_, carry_;
  std::vector<Bound> bounds_;
  /// Of targets whose increments are predicted and that have a range: the input at time 0 in the units of y.
  std::vector<Entry> state_in_input_;
};

}  // namespace jigsaw::inline task
