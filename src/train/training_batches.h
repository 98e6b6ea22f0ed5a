#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include "samples/prefetch.h"
#include "samples/sample_source.h"
#include "samples/sampler.h"
#include "task/placed_model.h"

namespace jigsaw::inline train {

/// Which samples each part of each step trains on, and this rank's piece of them. Thread-safe.
class TrainingBatches {
 public:
  TrainingBatches(const Configuration& configuration, Objective& objective, const PlacedModel& placed);

  /// Part `number` % accumulate of step `number` / accumulate, both from 0. @throws DataError
  ///
  /// @param host  where the batch is read to.
  Batch read(std::int64_t number, const Context& host);
  /// As Sampler::go_on_behind().
  void go_on_behind(const SamplesSeen& seen);
  /// What suits batches of this size.
  ReadAhead ahead() const;
  /// Leads that step 0, 1, … runs.
  int leads_of(std::int64_t step) const;

 private:
  const TrainOptions& options_;
  std::int64_t workers_;
  std::uint64_t seed_;
  Objective& objective_;
  const PlacedModel& placed_;
  Sampler sampler_;
  std::mutex mutex_;                                    ///< guards the sampler and the readers
  std::vector<std::unique_ptr<SampleReader>> readers_;  ///< those that no thread reads with
};

/// What read() gives of a part that runs so many leads, in shapes alone: on arrays without memory it lets a
/// step be run without data.
Batch batch_of_shapes(const PlacedModel& placed, const Loss& loss, int leads);

}  // namespace jigsaw::inline train
