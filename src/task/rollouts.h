#pragma once
#include <cstdint>
#include <functional>

#include "samples/prefetch.h"
#include "task/opened_run.h"

namespace jigsaw::inline task {

/// Forecasts without gradients, one batch after the other. What belongs to a lead is read ahead while leads
/// before it run, and goes when the next has come: a rank holds a few leads of its pieces, however many a
/// forecast has.
class Rollouts {
 public:
  /// Reads this rank's piece of one lead of a batch (BatchRequest::lead), in order, on a thread of its own.
  using Load = std::function<Batch(std::int64_t batch, int lead)>;
  /// @param prediction  in compared_layout() of the placed model.
  /// @param batch       holds this lead, and what the rollout started from.
  using Use = std::function<void(int lead, const ShardedTensor& prediction, const Batch& batch)>;
  /// The same with what the rollout goes on from, whatever Clamped says. @return  whether it goes on.
  using UseState = std::function<bool(int lead, const ShardedTensor& prediction, const Batch& batch,
                                      const RolloutState& state)>;

  /// @param leads    of each rollout.
  /// @param clamped  where predictions lie that were brought to an end of their range.
  /// @param first    the lead that it begins with, from 0 on: of one that others began `load` reads lead 0,
  /// for what that started from, then `first` − 1, for what it was given there.
  Rollouts(OpenedRun& run, Load load, std::int64_t batches, int leads, Clamped clamped = Clamped::kAtEnd,
           int first = 0);

  /// Runs the next batch and calls `use` for each lead. Collective, as `use` may be: what `load` threw on one
  /// rank throws on all.
  void run_next(std::int64_t samples, const Use& use);
  /// The same from where a rollout stood behind lead `first` − 1 (nothing where `first` is 0). Once `use` has
  /// ended one, alike on all ranks, no other can be run.
  void run_next(std::int64_t samples, RolloutState state, const UseState& use);

 private:
  Batch next_lead();

  OpenedRun& run_;
  Clamped clamped_;
  int first_;
  Prefetch prefetch_;
};

}  // namespace jigsaw::inline task
