#pragma once
#include "base/error.h"
#include "job.h"
#include "options.h"

namespace jigsaw {

/// The options of the main command.
struct TrainArguments {
  ConfigArguments configuration;
  std::string resume = "auto";
  bool allow_change = false;
  bool no_verify = false;
  std::string init_from;
  double max_minutes = 0;
  std::string trace;        ///< a file; empty: none
  bool profile = false;     ///< print where a step goes
  std::string trace_steps;  ///< which steps both look at
  bool find_nan = false;
};
void add_training(const CommandOptions& app, TrainArguments& options);

/// Trains on the ranks that the launcher started. Errors end in a line on stderr by one rank, and their exit
/// code on all.
/// @param command_line  as config.json of the run will hold it
ExitCode run_training(const TrainArguments& options, const std::string& command_line);
/// The same with a configuration that the ranks agree on when they are there.
ExitCode run_training(const TrainArguments& options, const std::string& command_line,
                      const ChooseConfiguration& choose);

}  // namespace jigsaw
