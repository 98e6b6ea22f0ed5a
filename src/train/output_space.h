#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "comm/communicator.h"
#include "optim/optimizer.h"
#include "task/configuration.h"

namespace jigsaw::inline train {

/// The output, or the folder in which it will be made.
std::filesystem::path existing_folder(const std::string& output);

/// What a run needs of the disk that its run directory is on.
struct OutputNeed {
  std::string output;            ///< the run directory, as configured
  double free_bytes = 0;         ///< where it is; the largest number where nobody knows
  double checkpoint_bytes = 0;   ///< of one checkpoint, see checkpoint_bytes()
  std::int64_t checkpoints = 0;  ///< that are still to be written, until the oldest makes room; 0: none
};

/// By how many checkpoints a run directory still grows: checkpoint.keep of them stand, with the one that is
/// being written, the one that checkpoint.best keeps, and those that checkpoint.keep_every does, as far as so
/// many are written.
/// @param steps_left  that the run makes
/// @param there       that stand already
std::int64_t checkpoints_to_come(const CheckpointOptions& options, std::int64_t steps_left,
                                 std::int64_t there);

/// Collective.
OutputNeed output_need(const Configuration& configuration, const Optimizer& optimizer,
                       std::int64_t steps_left, Communicator& world);

/// "output: 3 checkpoints of 4.3 MiB are still to be written, but 3.0 MiB are free in runs/a"; "" where there
/// is room.
std::string space_warning(const OutputNeed& need);

}  // namespace jigsaw::inline train
