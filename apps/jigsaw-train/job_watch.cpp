#include "job_watch.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <system_error>

#include "base/error.h"
#include "base/heartbeat.h"
#include "comm/from_first.h"
#include "commands.h"
#include "stop_signals.h"

namespace jigsaw {

namespace {

constexpr const char* kFolder = "jigsaw-watchdog";

std::string working_folder() {
  std::error_code gone;
  return std::filesystem::current_path(gone).string();
}

}  // namespace

JobWatch::JobWatch(Communicator& world, double seconds) : world_(&world) {
  WatchdogOptions options{.seconds = seconds};
  options.grace_seconds = std::min(options.grace_seconds, options.seconds);
  options.rank = world.rank();
  options.size = world.size();
  options.heartbeat = current_heartbeat();
  if (world.size() > 1) {
    const std::string folder = from_first(world, [&]() -> std::string {
      const std::string here = working_folder();
      if (here.empty()) return "";
      std::string made = folder_.emplace(kFolder, here).path();
      if (!made.empty()) remove_on_stop(Watchdog::alive_file(made).string());  // before anything is in it
      return made;
    });
    std::error_code unseen;
    const bool seen = !folder.empty() && std::filesystem::is_directory(folder, unseen);
    if (world.all_reduce(std::array{seen ? 1.0 : 0.0}, ReduceOp::kMin)[0] == 0) return;
    options.folder = folder;
  }
  watchdog_ = std::make_unique<Watchdog>(options, world.log(), [this](const std::string& report) {
    Communicator& now = *world_;
    print_error(report, now.rank(), now.size());
    now.abort(static_cast<int>(ExitCode::kInternal));
  });
}

JobWatch::~JobWatch() {
  if (folder_) remove_on_stop("");
}

void JobWatch::follow(Communicator& world) {
  world_ = &world;
  if (watchdog_) watchdog_->follow(world.log());
}

}  // namespace jigsaw
