#include "train/output_space.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "base/text.h"
#include "checkpoint/size.h"
#include "train/training_state.h"

namespace jigsaw::inline train {

std::filesystem::path existing_folder(const std::string& output) {
  std::filesystem::path folder = std::filesystem::absolute(output);
  std::error_code unreadable;
  while (!std::filesystem::is_directory(folder, unreadable) && folder.has_relative_path())
    folder = folder.parent_path();
  return folder;
}

namespace {

double free_bytes(const std::string& output) {
  struct statvfs room {};
  if (statvfs(existing_folder(output).c_str(), &room) != 0) return std::numeric_limits<double>::max();
  return static_cast<double>(room.f_bavail) * static_cast<double>(room.f_frsize);
}

std::int64_t checkpoints_in(const std::string& output) {
  std::error_code unreadable;
  std::int64_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(output + "/checkpoints", unreadable))
    if (entry.path().filename().string().starts_with("step_")) ++count;
  return count;
}

}  // namespace

std::int64_t checkpoints_to_come(const CheckpointOptions& options, std::int64_t steps_left,
                                 std::int64_t there) {
  if (options.every <= 0) return 0;
  const std::int64_t steps = std::max<std::int64_t>(steps_left, 0), best = options.best.empty() ? 0 : 1,
                     kept = options.keep_every > 0 ? steps / options.keep_every : 0;
  // The best are saved behind any validation.
  const std::int64_t saves = best > 0 ? steps : (steps + options.every - 1) / options.every;
  return std::min(saves, std::max<std::int64_t>(options.keep + 1 + best - there, 0) + kept);
}

OutputNeed output_need(const Configuration& configuration, const Optimizer& optimizer,
                       std::int64_t steps_left, Communicator& world) {
  const CheckpointOptions& options = configuration.checkpoint;
  const std::int64_t bytes = checkpoint_bytes(checkpoint_pieces(optimizer, Optimizer::Share::kSaved), world);
  OutputNeed need{configuration.output, 0, static_cast<double>(bytes), 0};
  if (world.rank() != 0) return need;
  need.free_bytes = free_bytes(need.output);
  need.checkpoints = checkpoints_to_come(options, steps_left, checkpoints_in(need.output));
  return need;
}

std::string space_warning(const OutputNeed& need) {
  if (need.checkpoint_bytes * static_cast<double>(need.checkpoints) <= need.free_bytes) return "";
  const bool one = need.checkpoints == 1;
  return concat("output: ", counted(need.checkpoints, "checkpoint"), " of ",
                human_bytes(std::llround(need.checkpoint_bytes)), one ? " is" : " are",
                " still to be written, but ", human_bytes(std::llround(need.free_bytes)), " are free in ",
                need.output);
}

}  // namespace jigsaw::inline train
