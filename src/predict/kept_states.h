#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "predict/background_writer.h"
#include "predict/restart_file.h"
#include "task/forecaster.h"

namespace jigsaw::inline predict {

/// Brings the states that rollouts ended in to rank 0, a piece at a time, and writes them there. What fails
/// there is no error: it is kept for failure(), the file goes, and nothing more is written.
class KeptStates {
 public:
  KeptStates(PlacedModel& placed, Communicator& world, const RestartModel& model);

  /// On the rank that writes. @param path  of the file.
  void open(const std::vector<Time>& starts, const std::string& path);
  /// Of the next starts, `samples` from number `first` on. Collective.
  /// @param step    behind which the state is. @param writer  that of rank 0; elsewhere null.
  /// @param digests  start_digests() of these.
  void keep(const RolloutState& state, std::int64_t first, std::int64_t samples, int step,
            std::span<const double> digests, BackgroundWriter* writer);
  /// Of how many starts there are states.
  std::int64_t count() const { return std::ssize(steps_); }
  /// On the rank that writes, once the writer is done.
  void close();
  /// Why there is no file: a DataError or DiskError. On the rank that writes, once the writer is done.
  const std::optional<Error>& failure() const { return failure_; }

 private:
  void guarded(const std::function<void()>& work);

  PlacedModel& placed_;
  Communicator& world_;
  RestartModel model_;
  std::vector<int> steps_;
  std::vector<double> digests_;
  std::string path_;
  std::optional<Error> failure_;
  std::unique_ptr<RestartWriter> file_;
};

/// This rank's piece of where the forecasts from these starts, a batch, stood. @throws DataError
RolloutState read_state(PlacedModel& placed, const RestartModel& model, const RestartFile& file,
                        std::span<const Time> starts);

}  // namespace jigsaw::inline predict
