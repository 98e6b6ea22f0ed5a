#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "base/log.h"
#include "base/printable.h"
#include "base/text.h"
#include "commands.h"

namespace jigsaw {

void print_error(const std::string& message, int rank, int ranks) {
  print_to_stderr(
      concat("jigsaw-train: error: ", ranks > 1 ? concat("[rank ", rank, "] ") : "", printable(message)));
}

namespace {

/// The rank a launcher gave this process, before MPI is there to ask: one of many speaks for all.
int launched_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    if (const char* value = std::getenv(name)) return std::atoi(value);
  }
  return 0;
}

/// For options that name a file or folder: an empty name is a variable that a script forgot to set.
std::string refuse_empty(const std::string& text) {
  return text.empty() ? "must not be empty" : "";
}

struct CommandLine {
  TrainCommand train;
  CheckCommand check;
  InitCommand init;
  EvaluateCommand evaluate;
  PredictCommand predict;
  PlanCommand plan;
  VerifyCommand verify;
  SampleDataCommand sample_data;
  ConfigCommand config;
  ExportCommand exported;
  ImportCommand imported;
  std::string inspected;
  SweepCommand sweep;
  CLI::App app{"Trains models whose samples are too large for one processor, cut over MPI ranks.",
               "jigsaw-train"};
  CLI::App* train_command = nullptr;
  CLI::App* check_command = nullptr;
  CLI::App* init_command = nullptr;
  CLI::App* evaluate_command = nullptr;
  CLI::App* predict_command = nullptr;
  CLI::App* plan_command = nullptr;
  CLI::App* verify_command = nullptr;
  CLI::App* sample_data_command = nullptr;
  CLI::App* config_command = nullptr;
  CLI::App* export_command = nullptr;
  CLI::App* import_command = nullptr;
  CLI::App* inspect_command = nullptr;
  CLI::App* rules_command = nullptr;
  CLI::App* sweep_command = nullptr;

  CommandLine() {
    app.set_version_flag("--version", "jigsaw-train " JIGSAW_VERSION);
    add_configuration(app, train.configuration);
    app.add_option("--resume", train.resume,
                   "auto: go on from the newest whole checkpoint, if any; never; or a checkpoint's folder")
        ->check(refuse_empty);
    app.add_flag("--allow-change", train.allow_change, "Resume although keys changed that decide the result");
    app.add_flag("--no-verify", train.no_verify,
                 "Load a checkpoint without reading all of it to check its digests");
    app.add_option(
           "--init-from", train.init_from,
           "Begin with the parameters of this checkpoint, by name, unless there is one to resume from")
        ->check(refuse_empty);
    app.add_option("--max-minutes", train.max_minutes, "End in time with a checkpoint, exit code 75")
        ->check([](const std::string& text) {
          double minutes = 0;
          const bool number = CLI::detail::lexical_cast(text, minutes) && std::isfinite(minutes);
          return number && minutes > 0 ? "" : "must be a number of minutes above 0, not " + text;
        });
    app.add_option("--trace", train.trace, "Write a trace of some steps, for https://ui.perfetto.dev")
        ->check(refuse_empty);
    app.add_flag("--profile", train.profile,
                 "Print where these steps go: operations, layers, communication, data");
    app.add_option("--trace-steps", train.trace_steps,
                   "Which: 7, 7-9, or all; default: the second to the fourth that are made")
        ->check(refuse_empty);
    app.add_flag("--find-nan", train.find_nan,
                 "Replay a step whose loss or gradient is not finite, or leaps, and name where that begins");
    train_command = app.add_subcommand("train", "Train, as without a command (options as below)");
    train_command->fallthrough();
    check_command =
        app.add_subcommand("check", "Open all that a run would need, plan it, read a batch, and end");
    add_configuration(*check_command, check.configuration)->required();
    check_command
        ->add_option("--ranks", check.ranks, "Plan for so many ranks, of which this one stands for the first")
        ->check(CLI::Range(1, 1 << 20));
    add_init_command();
    add_predict_command();
    add_evaluate_command();
    add_plan_command();
    add_verify_command();
    sample_data_command = app.add_subcommand("sample-data", "Write a small ERA5-shaped data set");
    sample_data_command->add_option("--output", sample_data.output, "Folder for the files")
        ->required()
        ->check(refuse_empty);
    sample_data_command->add_option("--months", sample_data.months, "Months from January 2021 on");
    sample_data_command->add_option("--seed", sample_data.seed, "Of the waves");
    config_command = app.add_subcommand("config", "Explain the configuration");
    config_command->add_flag("--schema", config.schema, "Print its JSON Schema");
    config_command->add_option("--explain", config.explain, "Explain one key, by its dotted path");
    config_command->add_flag("--markdown", config.reference,
                             "Print all keys as docs/configuration.md has them");
    add_checkpoint_commands();
    rules_command =
        app.add_subcommand("rules", "Prove the sharding rules of every operation, and print them");
    add_sweep_command();
    app.require_subcommand(0, 1);
  }

  /// @return  the option that names the file.
  static CLI::Option* add_configuration(CLI::App& command, ConfigArguments& arguments) {
    command
        .add_option("--set", arguments.overrides,
                    "KEY=VALUE: overrides one key by its dotted path; may be repeated")
        ->take_all()
        ->allow_extra_args(false);
    return command
        .add_option("-c,--config,configuration", arguments.config,
                    "The configuration (JSON) of a run; --config may be left out")
        ->check(refuse_empty);
  }

  void add_init_command() {
    init_command = app.add_subcommand("init", "Write a first configuration that runs on these data files");
    init_command->add_option("--data", init.files, "Files or patterns: NetCDF, HDF5")->required();
    init_command
        ->add_option("--task", init.task, "forecast, denoise or map; default: what the files look like")
        ->check(CLI::IsMember({"forecast", "denoise", "map"}));
    init_command->add_option("--from", init.recipe, "The model: unet (any grid), vit, swin or weathermixer")
        ->check(CLI::IsMember({"unet", "vit", "swin", "weathermixer"}));
    init_command->add_option("--output", init.output, "The file to write; default first.json");
  }

  static void add_model(CLI::App& command, ModelArguments& arguments) {
    add_configuration(command, arguments.configuration)->required();
    command
        .add_option("--checkpoint", arguments.checkpoint,
                    "The checkpoint's folder, or a run directory for its newest")
        ->required();
    command
        .add_option("--average", arguments.average,
                    "The moving average of the weights: auto, where there is one; always; never")
        ->check(CLI::IsMember({"auto", "always", "never"}));
  }

  void add_predict_command() {
    predict_command = app.add_subcommand("predict", "Write what a trained model predicts, in physical units");
    add_model(*predict_command, predict.model);
    predict_command->add_option("--output", predict.output, "The NetCDF file to write")->required();
    predict_command->add_flag("--overwrite", predict.overwrite, "Replace the file if it is there");
    predict_command->add_option("--steps", predict.steps, "Steps of each forecast, of data.lead_hours each")
        ->check(CLI::Range(1, 100'000));
    auto* start = predict_command->add_option("--start", predict.starts,
                                              "Times that forecasts start from, like 2019-03-01T06:00");
    predict_command
        ->add_option(
            "--period", predict.period,
            "Start from every time of the configuration's data.train or data.valid; the default: valid")
        ->check(CLI::IsMember({"train", "valid"}))
        ->excludes(start);
    predict_command->add_option("--variables", predict.variables, "Write these only");
    predict_command->add_option("--levels", predict.levels, "Of variables on levels write these only");
    predict_command->add_flag(
        "--split-levels", predict.split_levels,
        "Write each level as a variable of its own, as t_850: for CDO, whose variables have "
        "four dimensions at most");
  }

  void add_evaluate_command() {
    evaluate_command = app.add_subcommand(
        "evaluate", "Score what a trained model predicts, as a validation without training");
    add_model(*evaluate_command, evaluate.model);
    evaluate_command
        ->add_option("--period", evaluate.period,
                     "The configuration's data.train or data.valid (the default), or two dates")
        ->expected(1, 2);
    evaluate_command
        ->add_option("--leads", evaluate.leads, "Steps of each forecast; default: validation.rollout")
        ->check(CLI::Range(1, 100'000));
    evaluate_command->add_option("--region", evaluate.regions,
                                 "NAME=SOUTH,NORTH,WEST,EAST in degrees: a region to score; may be repeated");
    evaluate_command->add_option("--json", evaluate.json, "A JSON file to write all scores and spectra to");
    evaluate_command->add_option("--netcdf", evaluate.netcdf, "The same as NetCDF");
    evaluate_command->add_flag("--overwrite", evaluate.overwrite, "Replace these files if they are there");
  }

  void add_plan_command() {
    plan_command = app.add_subcommand(
        "plan",
        "Print what a step takes on the meshes of N ranks, without data, MPI or memory (docs/plan.md)");
    add_configuration(*plan_command, plan.configuration)->required();
    plan_command->add_option("--ranks", plan.ranks, "How many; default: those of the configuration's mesh")
        ->check(CLI::Range(1, 1 << 20));
    plan_command->add_option("--memory", plan.memory, "Of a rank, such as 80GB; default: the machine's");
    plan_command->add_option(
        "--machine", plan.machine,
        "h100-nvlink, a100-ib, cpu-node, or a file: of constants, or a run's machine.json");
    plan_command
        ->add_option("--calibrate", plan.calibrate,
                     "Measure the started ranks first, keep that in this file, and plan with it")
        ->check(refuse_empty);
    plan_command->add_flag("--json", plan.json, "Print all of it as JSON");
    plan_command->add_flag("--explain", plan.explain,
                           "Print why a mesh is faster than the next, block by block");
  }

  void add_verify_command() {
    verify_command = app.add_subcommand(
        "verify",
        "Compare the first steps on these ranks with those on one rank, or on another mesh (docs/plan.md)");
    add_configuration(*verify_command, verify.configuration)->required();
    verify_command->add_option("--against", verify.against,
                               "The other mesh, as in a configuration: {\"domain\":[2,1]}");
    verify_command->add_option("--ranks", verify.ranks, "Without a launcher: so many ranks as threads")
        ->check(CLI::Range(1, 1024));
    verify_command->add_option("--steps", verify.steps, "How many; default 3")->check(CLI::Range(1, 1000));
  }

  void add_sweep_command() {
    sweep_command = app.add_subcommand(
        "sweep",
        "Train one run of a search over keys of the configuration (--config, --set, … as for training)");
    sweep_command->fallthrough();
    sweep_command->add_option("--grid", sweep.grid, "The search (JSON; docs/cluster.md)")
        ->required()
        ->check(refuse_empty);
    sweep_command->add_option("--index", sweep.index, "Number of the run; default SLURM_ARRAY_TASK_ID")
        ->check(CLI::NonNegativeNumber);
    auto* what = sweep_command->add_option_group("instead of training");
    what->add_flag("--list", sweep.list, "Print the runs and what each sets");
    what->add_flag("--size", sweep.size, "Print how many tasks there are");
    what->add_flag("--summary", sweep.summary, "Print how the runs stand, and the best");
    what->add_option("--local", sweep.local, "Train all runs on this machine, so many at a time")
        ->check(CLI::PositiveNumber);
    what->require_option(0, 1);
    sweep_command->add_option("--format", sweep.format, "Of the summary: table, json or csv")
        ->check(CLI::IsMember({"table", "json", "csv"}));
    sweep_command->add_option("--ranks", sweep.ranks, "With --local: ranks of each run (mpirun)")
        ->check(CLI::PositiveNumber);
  }

  void add_checkpoint_commands() {
    export_command = app.add_subcommand("export", "Write the parameters of a checkpoint as safetensors");
    export_command->add_option("--checkpoint", exported.checkpoint, "The checkpoint's folder")
        ->required()
        ->check(refuse_empty);
    export_command->add_option("--output", exported.output, "The file to write")
        ->required()
        ->check(refuse_empty);
    export_command->add_flag("--average", exported.average,
                             "Their moving average in place of the parameters");
    export_command->add_flag("--no-verify", exported.no_verify,
                             "Do not check the checkpoint's digests first");
    import_command = app.add_subcommand("import", "Make a checkpoint for --init-from out of safetensors");
    import_command->add_option("--input", imported.input, "The safetensors file")
        ->required()
        ->check(refuse_empty);
    import_command->add_option("--output", imported.output, "Folder for the checkpoint")
        ->required()
        ->check(refuse_empty);
    inspect_command = app.add_subcommand(
        "inspect", "Print what a checkpoint, safetensors or data file holds, and check it");
    inspect_command->add_option("path", inspected, "The file or folder")->required()->check(refuse_empty);
  }
};

[[noreturn]] void refuse(const std::string& what) {
  throw ConfigError(concat("command line: ", what, "; see jigsaw-train --help"));
}

/// A first word that is neither a command nor a file, but written like a command.
void refuse_misspelt_command(const CLI::App& app, const std::string& word) {
  if (word.starts_with("-") || std::filesystem::exists(word)) return;
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands({})) commands.push_back(command->get_name());
  if (std::find(commands.begin(), commands.end(), word) != commands.end()) return;
  const std::string suggestion = did_you_mean(word, commands);
  if (!suggestion.empty()) refuse(concat(word, " is neither a command nor a file", suggestion));
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
    refuse(concat("there is no option ", option, did_you_mean(option, options)));
  }
}

/// @throws ConfigError when it is wrong or names neither a run nor a command; CLI::Success for --help and
/// --version.
void parse(CommandLine& line, int argc, char** argv) {
  try {
    line.app.parse(argc, argv);
  } catch (const CLI::Success&) {
    throw;
  } catch (const CLI::ParseError& error) {
    if (argc > 1) refuse_misspelt_command(line.app, argv[1]);
    refuse_unknown_option(line.app);
    refuse(error.what());
  }
  if (argc > 1) refuse_misspelt_command(line.app, argv[1]);
  const std::string& config = line.train.configuration.config;
  const bool trains = line.app.get_subcommands().empty() || line.train_command->parsed();
  if (trains && config.empty()) refuse("a configuration or a command is needed");
  if (!trains && !line.sweep_command->parsed() && !config.empty()) {
    refuse(
        concat(config, " is nothing that the command ", line.app.get_subcommands()[0]->get_name(), " takes"));
  }
}

ExitCode run(int argc, char** argv) {
  CommandLine line;
  // All launched ranks see one command line, and what needs no ranks is done or refused once: the others end
  // at once and with success, since launchers kill a job, and rank 0 in mid-sentence, at the first exit code.
  const bool first = launched_rank() == 0;
  try {
    parse(line, argc, argv);
  } catch (const CLI::Success& success) {
    if (first) line.app.exit(success);
    return ExitCode::kDone;
  } catch (const ConfigError&) {
    if (first) throw;
    return ExitCode::kDone;
  }
  if (line.check_command->parsed()) return run_check(line.check);
  if (line.verify_command->parsed()) return run_verify(line.verify);
  if (line.plan_command->parsed() && !line.plan.calibrate.empty()) return run_calibration(line.plan);
  for (int i = 0; i < argc; ++i) line.train.command_line += concat(i > 0 ? " " : "", argv[i]);
  line.predict.command_line = line.train.command_line;
  if (line.predict_command->parsed()) return run_predict(line.predict);
  if (line.evaluate_command->parsed()) return run_evaluate(line.evaluate);
  if (line.sweep_command->parsed() && line.sweep.trains()) return run_sweep(line.sweep, line.train);
  if (!line.app.get_subcommands().empty() && !line.train_command->parsed() && !first) return ExitCode::kDone;
  if (line.init_command->parsed()) {
    run_init(line.init);
  } else if (line.plan_command->parsed()) {
    run_plan(line.plan);
  } else if (line.sample_data_command->parsed()) {
    run_sample_data(line.sample_data);
  } else if (line.config_command->parsed()) {
    run_config(line.config);
  } else if (line.export_command->parsed()) {
    run_export(line.exported);
  } else if (line.import_command->parsed()) {
    run_import(line.imported);
  } else if (line.inspect_command->parsed()) {
    run_inspect(line.inspected);
  } else if (line.rules_command->parsed()) {
    return run_rules();
  } else if (line.sweep_command->parsed()) {
    return run_sweep(line.sweep, line.train);
  } else {
    return run_train(line.train);
  }
  return ExitCode::kDone;
}

}  // namespace
}  // namespace jigsaw

int main(int argc, char** argv) {
  using namespace jigsaw;
  ExitCode code = ExitCode::kInternal;
  std::string message;
  try {
    return static_cast<int>(run(argc, argv));
  } catch (const Error& error) {
    code = error.code();
    message = error.what();
  } catch (const std::exception& error) {
    message = error.what();
  }
  if (launched_rank() == 0) print_error(message, 0, 1);
  return static_cast<int>(code);
}
