#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "job.h"

namespace jigsaw {

/// The options of the main command, as the command line gives them.
struct TrainCommand {
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
  std::string command_line;
};
/// Trains on the ranks that the launcher started. Errors end in a line on stderr by one rank, and their exit
/// code on all.
ExitCode run_train(const TrainCommand& command);
/// The same with a configuration that the ranks agree on when they are there.
ExitCode run_train(const TrainCommand& command, const ChooseConfiguration& choose);

/// A search over keys of a configuration; see sweep/search_space.h.
struct SweepCommand {
  std::string grid;
  std::optional<std::int64_t> index;  ///< of the run; else the array task's number that SLURM gives
  bool list = false;                  ///< print the runs
  bool size = false;                  ///< print how many tasks there are
  bool summary = false;               ///< print how the runs stand
  std::string format = "table";       ///< of the summary: table, json or csv
  int local = 0;                      ///< run all here, so many at a time
  int ranks = 1;                      ///< of each run under `local`

  /// Whether it trains in this process, on all ranks that were launched.
  bool trains() const { return !list && !size && !summary && local == 0; }
};
ExitCode run_sweep(const SweepCommand& command, const TrainCommand& train);

struct CheckCommand {
  ConfigArguments configuration;
  int ranks = 0;  ///< to plan for; 0: those that were started
};
/// Opens all that a run would need, plans, reads a batch of training and all labels, runs a batch of
/// validation, and ends.
ExitCode run_check(const CheckCommand& command);

/// A model of a checkpoint, as predict and evaluate are told.
struct ModelArguments {
  ConfigArguments configuration;
  std::string checkpoint;
  std::string average = "auto";  ///< or always or never
};

struct PredictCommand {
  ModelArguments model;
  std::string output;
  bool overwrite = false;
  int steps = 1;
  std::vector<std::string> starts;
  std::string period = "valid";
  std::vector<std::string> variables;
  std::vector<double> levels;
  bool split_levels = false;
  std::string command_line;
};
/// Writes what a model predicts, in physical units. Errors end as those of training do.
ExitCode run_predict(const PredictCommand& command);

struct EvaluateCommand {
  ModelArguments model;
  std::vector<std::string> period = {"valid"};  ///< or train, or two dates
  int leads = 0;                                ///< 0: as the configuration's validation
  std::vector<std::string> regions;
  std::string json, netcdf;
  bool overwrite = false;
};
/// Scores a model over a period. Errors end as those of training do.
ExitCode run_evaluate(const EvaluateCommand& command);

struct PlanCommand {
  ConfigArguments configuration;
  int ranks = 0;  ///< 0: those of the configuration's mesh
  std::string memory;
  std::string machine;
  std::string
      calibrate;  ///< a file for what the started ranks are measured to do; empty: nothing is measured
  bool json = false;
  bool explain = false;
};
/// Prints what a training step takes on the meshes of so many ranks, the fastest first.
/// @throws ConfigError  also when no mesh has so many ranks or fits the memory; it says what would.
void run_plan(const PlanCommand& command);
/// Measures the started ranks, keeps that in `calibrate`, and plans with it. Errors end as those of training.
ExitCode run_calibration(const PlanCommand& command);

struct VerifyCommand {
  ConfigArguments configuration;
  std::string against;  ///< a mesh as in a configuration; empty: one rank
  int ranks = 0;        ///< as threads of this process; 0: those that were started
  int steps = 3;
};
/// Compares the first steps of a run on these ranks with those on one rank or on another mesh; kInternal
/// unless all is within tolerance.
ExitCode run_verify(const VerifyCommand& command);

/// Prints the sharding rule of every operation and the validator's verdict; kInternal unless all is proven.
ExitCode run_rules();

struct InitCommand {
  std::vector<std::string> files;
  std::string task;  ///< forecast, denoise, map; or what the files look like
  std::string recipe = "unet";
  std::string output = "first.json";
};
/// Writes a first configuration for data files, see train/first_configuration.h. @throws ConfigError,
/// DataError
void run_init(const InitCommand& command);

struct SampleDataCommand {
  std::string output;
  int months = 2;
  std::uint64_t seed = 1;
};
void run_sample_data(const SampleDataCommand& command);

struct ConfigCommand {
  bool schema = false;
  bool reference = false;
  std::string explain;
};
void run_config(const ConfigCommand& command);

struct ExportCommand {
  std::string checkpoint, output;
  bool average = false;
  bool no_verify = false;
};
/// Whole parameters of a checkpoint as safetensors.
void run_export(const ExportCommand& command);

struct ImportCommand {
  std::string input, output;
};
/// The way back: a checkpoint of parameters alone, for --init-from.
void run_import(const ImportCommand& command);

/// Prints what a checkpoint or data file holds. @throws CheckpointError  when it is damaged.
void run_inspect(const std::string& path);

/// "jigsaw-train: error: [rank 3] what"; the rank is named in jobs of several.
void print_error(const std::string& message, int rank, int ranks);

}  // namespace jigsaw
