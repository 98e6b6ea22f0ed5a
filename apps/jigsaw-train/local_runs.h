#pragma once
#include <functional>
#include <string>
#include <vector>

namespace jigsaw {

/// A process to run here; what it prints is appended to a file.
struct LocalRun {
  std::string name;
  std::vector<std::string> command;
  std::string output_file;
  std::vector<std::string> variables =
      {};  ///< of its environment, "NAME=value", beside those of this process
};

/// Runs processes, at most `at_a_time` at once, and returns when all have ended. SIGINT, SIGTERM, SIGUSR1
/// and SIGHUP are passed on as SIGUSR1, which makes runs end with a checkpoint; no more are then begun.
///
/// @param gpus   CUDA_VISIBLE_DEVICES of each of those that run at once; empty: as this process has it.
/// @param ended  called with each run's number and exit code (128 + number of the signal that ended it).
/// @return       whether a signal cut it short.
/// @throws ConfigError  when a process cannot be started or its output not written, once those that run have
///                      ended; no more are then begun.
bool run_locally(const std::vector<LocalRun>& runs, int at_a_time, const std::vector<std::string>& gpus,
                 const std::function<void(std::size_t run, int exit_code)>& ended);

}  // namespace jigsaw
