#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "config/json.h"

namespace jigsaw::inline sweep {

enum class RunState : std::uint8_t {
  kWaiting,      ///< nothing is there yet
  kRunning,      ///< a process holds the folder's lock
  kStopped,      ///< ended early with a checkpoint (exit code 75): start again to go on
  kInterrupted,  ///< ended without a word: killed, or its machine died
  kFailed,
  kFinished
};
const char* name(RunState state);

/// What a run's folder says of it.
struct RunStatus {
  RunState state = RunState::kWaiting;
  std::optional<int> exit_code;  ///< of its last end that left one
  std::int64_t step = 0;         ///< of the last training line
  std::optional<double> metric;  ///< of the last validation, when it has it and it is finite
  bool lacks_metric = false;     ///< the last validation has no such number, or there is none
};

/// Reads a run's folder. What is not there, or torn, counts as not known.
/// @param metric  a name that number_in() knows.
RunStatus run_status(const std::filesystem::path& folder, const std::string& metric);

/// Whether the run ended itself before its last step, as its summary says (validation.patience).
bool ended_itself(const std::filesystem::path& folder);

/// The state and the exit code alone, without reading metrics.
RunStatus how_it_ended(const std::filesystem::path& folder);

/// The metric of the validation after a step, NaN where it is not finite; nothing when that is not there or
/// lacks it.
std::optional<double> metric_at_step(const std::filesystem::path& folder, const std::string& metric,
                                     std::int64_t step);

/// How the last start of a run ended, for run_status(); replaces what is there. nullopt: it begins.
/// @throws FileError
void write_exit_code(const std::filesystem::path& folder, std::optional<int> exit_code);

}  // namespace jigsaw::inline sweep
