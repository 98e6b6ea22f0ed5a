#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "base/exit_file.h"
#include "base/log.h"
#include "base/printable.h"
#include "base/text.h"
#include "commands.h"
#include "files/io_lock.h"
#include "files/probe.h"
#include "printed.h"
#include "short_waits.h"
#include "stop_signals.h"
#include "version.h"

namespace jigsaw {

int launched_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    if (const char* value = std::getenv(name)) return std::atoi(value);
  }
  return 0;
}

namespace {

void print_of_rank(const char* kind, const std::string& message, int rank, int ranks) {
  print_to_stderr(concat("jigsaw-train: ", kind, ": ", ranks > 1 ? concat("[rank ", rank, "] ") : "",
                         printable(message)));
}

}  // namespace

void print_error(const std::string& message, int rank, int ranks) {
  print_of_rank("error", message, rank, ranks);
}
void print_warning(const std::string& message, int rank, int ranks) {
  print_of_rank("warning", message, rank, ranks);
}

namespace {

/// The parser of all commands, and what each does.
struct CommandLine {
  Invocation invocation;
  CLI::App app{"Trains models whose samples are too large for one processor, cut over MPI ranks.",
               "jigsaw-train"};
  std::vector<std::function<ExitCode()>> actions;  ///< in the order of command_table()

  CommandLine() {
    app.set_version_flag("--version", [] { return version_text(); });
    add_training(CommandOptions(app), invocation.train);
    for (const Command& command : command_table())
      actions.push_back(
          command.declare(CommandOptions(*app.add_subcommand(command.name, command.summary)), invocation));
    app.require_subcommand(0, 1);
  }

  /// The command's place in command_table(); that of `train` when none is named.
  std::size_t chosen() const {
    const std::vector<Command>& table = command_table();
    const std::vector<CLI::App*> parsed = app.get_subcommands();
    const std::string name = parsed.empty() ? "train" : parsed[0]->get_name();
    return static_cast<std::size_t>(
        std::find_if(table.begin(), table.end(), [&](const Command& each) { return each.name == name; }) -
        table.begin());
  }
};

[[noreturn]] void refuse(const CLI::App& app, const std::string& what) {
  const std::vector<CLI::App*> commands = app.get_subcommands();
  const std::string of = commands.empty() ? "" : commands.front()->get_name() + " ";
  throw ConfigError(concat("command line: ", what, "; see jigsaw-train ", of, "--help"));
}

/// A first word that is neither a command nor a file, but written like a command.
void refuse_misspelt_command(const CLI::App& app, const std::string& word) {
  std::error_code unreadable;
  if (word.starts_with("-") || std::filesystem::exists(word, unreadable)) return;
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands({})) commands.push_back(command->get_name());
  if (std::find(commands.begin(), commands.end(), word) != commands.end()) return;
  const std::string suggestion = did_you_mean(word, commands);
  if (!suggestion.empty()) refuse(app, concat(word, " is neither a command nor a file", suggestion));
}

/// An option that nothing here has, before whatever its value was taken for.
void refuse_unknown_option(const CLI::App& app) {
  std::vector<std::string> options;
  const auto append = [&](const CLI::App& of) {
    for (const CLI::Option* option : of.get_options()) {
      for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
    }
  };
  append(app);
  for (const CLI::App* command : app.get_subcommands()) append(*command);
  for (const std::string& word : app.remaining(true)) {
    if (!word.starts_with("-")) continue;
    const std::string option = word.substr(0, word.find('='));
    const bool of_another = std::find(options.begin(), options.end(), option) != options.end();
    refuse(app, of_another ? concat(option, " is no option of this command")
                           : concat("there is no option ", option, did_you_mean(option, options)));
  }
}

/// What stands before a command is of no effect on it.
void refuse_options_before(const CommandLine& line) {
  if (line.app.get_subcommands().empty()) return;
  const std::string command = command_table()[line.chosen()].name;
  if (command == "train" || command == "sweep") return;
  for (const CLI::Option* option : line.app.get_options()) {
    if (option->count() == 0) continue;
    const std::string name =
        option->get_lnames().empty() ? option->get_name() : "--" + option->get_lnames()[0];
    const bool is_place = option->results().size() == 1 && option->get_name() == "configuration";
    refuse(line.app, concat(is_place ? option->results().front() : name, " stands before the command ",
                            command, ", where it has no effect; write it behind ", command));
  }
}

/// A configuration that an option took for one of its values, as --checkpoint runs/first first.json.
void refuse_swallowed_configuration(const CLI::App& app) {
  for (const CLI::App* command : app.get_subcommands()) {
    for (const CLI::Option* option : command->get_options()) {
      const std::vector<std::string>& values = option->results();
      if (values.size() < 2 || option->get_lnames().empty()) continue;
      const auto found =
          std::ranges::find_if(values, [](const std::string& value) { return value.ends_with(".json"); });
      if (found == values.end()) continue;
      refuse(app, concat(*found, " was taken for a value of --", option->get_lnames()[0],
                         "; put the configuration first, or behind --config"));
    }
  }
}

/// @throws ConfigError when it is wrong or names neither a run nor a command; CLI::Success for --help and
/// --version.
void parse_command_line(CommandLine& line, int argc, char** argv) {
  try {
    // "help predict" is "predict --help".
    const bool helps = argc > 1 && std::string(argv[1]) == "help";
    std::vector<std::string> words(argv + (helps ? 2 : 1), argv + argc);
    if (helps) words.emplace_back("--help");
    std::ranges::reverse(words);  // as CLI11 takes them
    line.app.parse(words);
  } catch (const CLI::Success&) {
    throw;
  } catch (const CLI::ParseError& error) {
    if (argc > 1) refuse_misspelt_command(line.app, argv[1]);
    refuse_unknown_option(line.app);
    refuse_options_before(line);
    refuse_swallowed_configuration(line.app);
    refuse(line.app, error.what());
  }
  if (argc > 1) refuse_misspelt_command(line.app, argv[1]);
  refuse_options_before(line);
  const std::string& config = line.invocation.train.configuration.config;
  const std::string command = command_table()[line.chosen()].name;
  if (command == "train" && config.empty()) refuse(line.app, "a configuration or a command is needed");
  if (command != "train" && command != "sweep" && !config.empty())
    refuse(line.app, concat(config, " is nothing that the command ", command, " takes"));
}

ExitCode run(int argc, char** argv) {
  CommandLine line;
  // All launched ranks see one command line, and what needs no ranks is done or refused once: the others end
  // at once and with success, since launchers kill a job, and rank 0 in mid-sentence, at the first exit code.
  const bool first = launched_rank() == 0;
  try {
    parse_command_line(line, argc, argv);
  } catch (const CLI::Success& success) {
    if (first) {
      line.app.exit(success);
      require_printed();
    }
    return ExitCode::kDone;
  } catch (const ConfigError&) {
    if (first) throw;
    return ExitCode::kDone;
  }
  for (int i = 0; i < argc; ++i) line.invocation.command_line += concat(i > 0 ? " " : "", argv[i]);
  const std::size_t chosen = line.chosen();
  if (!command_table()[chosen].is_stopped) remove_stop_signals();
  if (command_table()[chosen].ranks == RunsOn::kFirstRank && !first) return ExitCode::kDone;
  const ExitCode code = line.actions[chosen]();
  // What ranks do together has its results in files, and does not fail for lines that nobody can read.
  if (code == ExitCode::kDone && command_table()[chosen].ranks == RunsOn::kFirstRank) require_printed();
  return code;
}

ExitCode run_and_tell(int argc, char** argv) {
  ExitCode code = ExitCode::kInternal;
  std::string message;
  try {
    return run(argc, argv);
  } catch (const Error& error) {
    code = error.code();
    message = error.what();
  } catch (const std::exception& error) {
    message = error.what();
  }
  keep_stop_signals();
  if (launched_rank() == 0) print_error(message, 0, 1);
  return code;
}

}  // namespace
}  // namespace jigsaw

int main(int argc, char** argv) {
  using namespace jigsaw;
  shorten_waits(argv);
  open_standard_streams();
  // As many queues to a GPU as there can be, which CUDA reads when the program first uses one: of the eight
  // that it makes by itself, streams of NCCL, which has two for each communicator, share some with those of
  // the program, whose work then stands behind what waits there.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  install_stop_signals();  // before MPI begins, which leaves handlers that are there
  leave_failed_files_alone();
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit of file sizes fails, as on a full disk
  if (argc == 2 && std::string(argv[1]) == Probe::kCommand) {
    remove_stop_signals();
    return run_probe();
  }
  if (constexpr const char* kSelf = "/proc/self/exe"; std::filesystem::exists(kSelf))
    set_probe_program(kSelf);
  take_exit_file();
  const int code = static_cast<int>(run_and_tell(argc, argv));
  if (launched_rank() == 0) note_exit_code(code);
  return code;
}
