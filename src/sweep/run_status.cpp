#include "sweep/run_status.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>

#include "base/disk.h"
#include "base/file.h"
#include "base/next_line.h"
#include "base/text.h"
#include "task/metric.h"

namespace jigsaw::inline sweep {
namespace {

constexpr const char* kExitFile = "exit.json";

std::filesystem::path metrics_file(const std::filesystem::path& folder) {
  return folder / "metrics.jsonl";
}

/// The whole lines of metrics.jsonl with a kind and a step.
void for_each_line(
    const std::filesystem::path& folder,
    const std::function<void(const std::string& kind, std::int64_t step, const Json& line)>& visit) {
  std::error_code unreadable;
  if (!std::filesystem::is_regular_file(metrics_file(folder), unreadable)) return;
  std::ifstream file(metrics_file(folder));
  std::string text;
  while (next_line(file, text)) {
    const Json line = Json::parse(text, nullptr, false);
    if (!line.is_object()) continue;
    const auto kind = line.find("kind"), step = line.find("step");
    if (kind == line.end() || step == line.end() || !kind->is_string() || !step->is_number_integer())
      continue;
    visit(kind->get<std::string>(), step->get<std::int64_t>(), line);
  }
}

/// Whether a process holds the run's lock.
bool is_locked(const std::filesystem::path& folder) {
  const int lock = ::open((folder / "lock").c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (lock < 0) return false;
  const bool held = ::flock(lock, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(lock);
  return held;
}

std::optional<int> read_exit_code(const std::filesystem::path& folder) {
  std::error_code unreadable;
  if (!std::filesystem::is_regular_file(folder / kExitFile, unreadable)) return std::nullopt;
  std::ifstream file(folder / kExitFile);
  const Json json = Json::parse(file, nullptr, false);
  if (!json.is_object() || !json.contains("exit_code") || !json.at("exit_code").is_number_integer())
    return std::nullopt;
  return json.at("exit_code").get<int>();
}

RunState state_of(const std::filesystem::path& folder, std::optional<int> exit_code) {
  if (is_locked(folder)) return RunState::kRunning;
  if (!exit_code) {
    std::error_code unreadable;
    const bool began = std::filesystem::exists(folder / "config.json", unreadable) ||
                       std::filesystem::exists(folder / kExitFile, unreadable);
    return began ? RunState::kInterrupted : RunState::kWaiting;
  }
  if (*exit_code == static_cast<int>(ExitCode::kDone)) return RunState::kFinished;
  return *exit_code == static_cast<int>(ExitCode::kStopped) ? RunState::kStopped : RunState::kFailed;
}

}  // namespace

const char* name(RunState state) {
  switch (state) {
    case RunState::kWaiting:
      return "waiting";
    case RunState::kRunning:
      return "running";
    case RunState::kStopped:
      return "stopped";
    case RunState::kInterrupted:
      return "interrupted";
    case RunState::kFailed:
      return "failed";
    case RunState::kFinished:
      return "finished";
  }
  return "";
}

RunStatus how_it_ended(const std::filesystem::path& folder) {
  RunStatus status;
  status.exit_code = read_exit_code(folder);
  status.state = state_of(folder, status.exit_code);
  return status;
}

bool ended_itself(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "summary.json";
  std::error_code unreadable;
  if (!std::filesystem::is_regular_file(path, unreadable)) return false;
  std::ifstream file(path);
  const Json summary = Json::parse(file, nullptr, false);
  return summary.is_object() && summary.contains("ended_by");
}

RunStatus run_status(const std::filesystem::path& folder, const std::string& metric) {
  RunStatus status = how_it_ended(folder);
  status.lacks_metric = true;
  for_each_line(folder, [&](const std::string& kind, std::int64_t step, const Json& line) {
    if (kind == "train") status.step = step;
    if (kind != "valid") return;
    status.metric = number_in(line, metric);
    status.lacks_metric = !status.metric;
    if (status.metric && !std::isfinite(*status.metric)) status.metric.reset();
  });
  return status;
}

std::optional<double> metric_at_step(const std::filesystem::path& folder, const std::string& metric,
                                     std::int64_t step) {
  std::optional<double> found;
  for_each_line(folder, [&](const std::string& kind, std::int64_t at, const Json& line) {
    if (kind == "valid" && at == step) found = number_in(line, metric);
  });
  return found;
}

void write_exit_code(const std::filesystem::path& folder, std::optional<int> exit_code) {
  Json json = Json::object();
  if (exit_code) json["exit_code"] = *exit_code;
  try {
    write_text_atomically((folder / kExitFile).string(), json.dump() + "\n");
  } catch (const FileError& error) {
    refuse_output<ConfigError>(error, concat("output: ", error.what()));
  }
}

}  // namespace jigsaw::inline sweep
