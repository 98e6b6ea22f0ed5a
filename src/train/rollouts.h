#pragma once
#include <cstdint>
#include <functional>

#include "samples/prefetch.h"
#include "train/opened_run.h"

namespace jigsaw::inline train {

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

  /// @param clamped  where predictions lie that were brought to an end of their range.
  Rollouts(OpenedRun& run, Load load, std::int64_t batches, int leads, Clamped clamped = Clamped::kAtEnd);

  /// Runs the next batch and calls `use` for each lead. Collective, as `use` may be: what `load` threw on one
  /// rank throws on all.
  void run_next(std::int64_t samples, const Use& use);

 private:
  Batch next_lead();

  OpenedRun& run_;
  Clamped clamped_;
  Prefetch prefetch_;
};

}  // namespace jigsaw::inline train
