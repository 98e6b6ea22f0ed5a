#pragma once
#include "task/opened_run.h"
#include "train/run_directory.h"

namespace jigsaw::inline train {

/// Looks on while a run trains: what reports and other programs' files are made of. All calls but metrics()
/// are collective and come on all ranks; what one throws ends the run, so that what cannot be written is
/// warned of instead.
class RunObserver {
 public:
  virtual ~RunObserver() = default;

  /// Before the first step; the run directory is there.
  /// @param step  that the run goes on from, 0 for one that begins.
  virtual void begin(OpenedRun& run, const RunDirectory& directory, std::int64_t step) = 0;
  /// Whether the first batch of validations holds Batch::origin. Asked behind begin().
  virtual bool needs_origin() const = 0;
  /// A line of metrics.jsonl, on the rank that writes it.
  virtual void metrics(const Json& line) = 0;
  /// What a validation predicts: in order each batch, from 0 on, and in it each lead, from 0 on.
  virtual void predicted(std::int64_t batch, int lead, const ShardedTensor& prediction,
                         const Batch& truth) = 0;
  /// The validation of a step has come to its end. May add to its result, alike on all ranks.
  virtual void validated(std::int64_t step, ValidationResult& result) = 0;
  /// The run is done or stopped; all its files but the observer's are written.
  virtual void end() = 0;
};

}  // namespace jigsaw::inline train
