#pragma once
#include <functional>
#include <string>

#include "base/error.h"
#include "command_options.h"
#include "train_command.h"

namespace jigsaw {

/// What the command line says beside a command's own options.
struct Invocation {
  TrainArguments train;      ///< of the main command, which `train` and `sweep` share
  std::string command_line;  ///< all of it
};

/// Declares a command's options. What they are set to is valid once the line is parsed; `invocation` lives
/// as long as the result.
/// @param command  of the command's name, with its summary
/// @return  what the command does then. Errors are thrown, or have ended in a line on stderr (run_job()).
using Declare = std::function<ExitCode()> (*)(const CommandOptions& command, const Invocation& invocation);

/// Which of the ranks that a launcher started do what the command does; the others end with success.
enum class RunsOn { kEveryRank, kFirstRank };

/// A command of the executable. Each is one file, and a line in the table of command_table.cpp.
struct Command {
  const char* name;
  const char* summary;
  Declare declare;
  RunsOn ranks;
  bool is_stopped = false;  ///< a signal ends it with exit code 75, to be started again; see stop_signals.h
};

/// All of them, in the order of --help.
const std::vector<Command>& command_table();

/// The rank that a launcher gave this process, before MPI is there to ask: one of many speaks for all.
int launched_rank();

/// "jigsaw-train: error: [rank 3] what"; the rank is named in jobs of several.
void print_error(const std::string& message, int rank, int ranks);
/// "jigsaw-train: warning: [rank 3] what".
void print_warning(const std::string& message, int rank, int ranks);

}  // namespace jigsaw
