#include <algorithm>
#include <charconv>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "base/output_place.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "commands.h"
#include "files/image_output.h"
#include "predict/forecast.h"
#include "predict/image_prediction.h"
#include "predict/readable_inputs.h"
#include "predict/restart_file.h"
#include "predict/sequence_forecast.h"
#include "stop_signals.h"

namespace jigsaw {

namespace {

struct PredictArguments {
  ModelArguments model;
  int members = 0;  ///< 0: as ensemble.members
  std::string output;
  bool overwrite = false;
  int steps = 1;
  std::vector<std::string> input;  ///< files in place of data.files; empty: those
  std::vector<std::string> starts;
  std::optional<std::int64_t> start_step;  ///< of sequences
  std::string period;                      ///< train or valid; "": valid
  std::vector<std::string> variables;
  std::vector<double> levels;
  bool split_levels = false;
  int every = 0;     ///< 0: not given
  std::string mean;  ///< a number of steps or a unit of the calendar; "": not given
  bool time_series = false;
  std::string points;         ///< a list of places; "": none
  std::string interpolation;  ///< as parse_place_value() takes it; "": linear
  std::optional<double> stop_outside;
  std::string go_on;             ///< a file of forecasts, whose rollouts go on; "": none
  std::string restart = "auto";  ///< or always or never
  WindowArguments windows;       ///< over images
  std::string classes;           ///< of images: labels or probabilities; "": labels
  bool skip_existing = false;    ///< outputs that are there are left alone
};

/// What a configuration asks for: forecasts of fields with dates or of sequences, or images.
enum class PredictKind : std::uint8_t { kFields, kSequences, kImages };
PredictKind kind_of(const DataOptions& data) {
  return data.of_images()      ? PredictKind::kImages
         : data.of_sequences() ? PredictKind::kSequences
                               : PredictKind::kFields;
}

/// Options of one kind that mean nothing for others.
void refuse_options(const PredictArguments& options, PredictKind kind) {
  using enum PredictKind;
  const auto text = [&](PredictKind of) {
    return of == kImages        ? "images"
           : of == kSequences   ? "sequences"
           : kind == kSequences ? "forecasts with dates"
                                : "forecasts";
  };
  struct Use {
    const char* option;
    bool given;
    std::vector<PredictKind> kinds;
  };
  const std::vector<Use> uses = {{"--members", options.members > 0, {kFields}},
                                 {"--start", !options.starts.empty(), {kFields}},
                                 {"--start-step", options.start_step.has_value(), {kSequences}},
                                 {"--period", !options.period.empty(), {kFields}},
                                 {"--steps", options.steps != 1, {kFields, kSequences}},
                                 {"--variables", !options.variables.empty(), {kFields, kSequences}},
                                 {"--levels", !options.levels.empty(), {kFields, kSequences}},
                                 {"--split-levels", options.split_levels, {kFields}},
                                 {"--every", options.every > 0, {kFields, kSequences}},
                                 {"--mean", !options.mean.empty(), {kFields}},
                                 {"--time-series", options.time_series, {kFields}},
                                 {"--points", !options.points.empty(), {kFields}},
                                 {"--interpolation", !options.interpolation.empty(), {kFields}},
                                 {"--continue", !options.go_on.empty(), {kFields}},
                                 {"--stop-outside", options.stop_outside.has_value(), {kFields}},
                                 {"--restart", options.restart != "auto", {kFields}},
                                 {"--overlap", options.windows.overlap.has_value(), {kImages}},
                                 {"--mirror", !options.windows.mirror.empty(), {kImages}},
                                 {"--classes", !options.classes.empty(), {kImages}}};
  for (const auto& [option, given, kinds] : uses) {
    if (!given || std::ranges::find(kinds, kind) != kinds.end()) continue;
    throw ConfigError(concat(
        "command line: ", option, " is for ", text(kinds.front()),
        kind == kSequences ? ", and data.dims makes these forecasts of " : ", and data.task is that of ",
        text(kind)));
  }
}

void refuse_own_files(const DataOptions& data) {
  for (const auto& [key, variables] :
       {std::pair{"variables", &data.variables}, {"static", &data.constants}}) {
    for (std::size_t i = 0; i < variables->size(); ++i) {
      if ((*variables)[i].files.empty()) continue;
      throw ConfigError(concat("command line: --input replaces data.files, but ", (*variables)[i].name,
                               " has files of its own; give both as --set 'data.files=[…]' and --set 'data.",
                               key, ".", i, ".files=[…]'"));
    }
  }
}

/// Files of the command line are found from the working folder.
std::vector<std::string> from_here(const std::vector<std::string>& patterns) {
  std::vector<std::string> absolute;
  for (const std::string& pattern : patterns) {
    if (pattern.empty())
      throw ConfigError(
          "command line: --input must hold names or patterns of files, and one of them is \"\"");
    absolute.push_back(std::filesystem::absolute(pattern).lexically_normal().string());
  }
  return absolute;
}

/// Sets what the forecasts need of the configuration. @return  those to go on from, or null.
std::unique_ptr<RestartFile> prepare_forecasts(const PredictArguments& options,
                                               Configuration& configuration) {
  require_netcdf_name(options.output, !options.points.empty());
  require_start_dates(options.starts);
  std::unique_ptr<RestartFile> restart;
  if (!options.go_on.empty()) restart = std::make_unique<RestartFile>(options.go_on);
  const bool as_before = restart && options.members == 0;
  set_members(as_before ? static_cast<int>(restart->members()) : options.members, configuration);
  // From a state that is kept at least one step more is to be possible.
  const bool keeps = parse_keep_state(options.restart) == KeepState::kAlways;
  configuration.validation.rollout =
      std::max(options.steps + (restart ? restart->most_steps() : 0), keeps ? 2 : 1);
  return restart;
}

constexpr int kMostMeanSteps = 100'000;

/// What --mean says. @throws ConfigError
void set_means(const std::string& mean, ForecastOptions& forecasts) {
  if (mean.empty()) return;
  forecasts.means = true;
  forecasts.mean_unit = parse_calendar_unit(mean);
  if (forecasts.mean_unit) return;
  const char* end = mean.data() + mean.size();
  const auto [rest, error] = std::from_chars(mean.data(), end, forecasts.every);
  if (error == std::errc() && rest == end && forecasts.every >= 1 && forecasts.every <= kMostMeanSteps)
    return;
  const std::vector<std::string> units = {"day", "month", "season", "year"};
  throw ConfigError(concat("command line: --mean must be a number of steps between 1 and ", kMostMeanSteps,
                           ", or day, month, season or year, not ", mean, did_you_mean(mean, units)));
}

ForecastOptions forecasts_of(const PredictArguments& options, const RestartFile* restart) {
  ForecastOptions forecasts{options.output,    options.overwrite, options.skip_existing,
                            options.steps,     options.starts,    options.period,
                            options.variables, options.levels,    options.split_levels};
  forecasts.every = std::max(options.every, 1);
  set_means(options.mean, forecasts);
  forecasts.time_series = options.time_series;
  forecasts.points = options.points;
  if (options.points.empty() && !options.interpolation.empty())
    throw ConfigError("command line: --interpolation has no effect without --points");
  if (!options.interpolation.empty()) forecasts.place_value = parse_place_value(options.interpolation);
  forecasts.stop_outside = options.stop_outside;
  forecasts.keep_state = parse_keep_state(options.restart);
  forecasts.restart_from = restart;
  return forecasts;
}

/// Writes what a model predicts, in physical units. Errors end as those of training do.
ExitCode run_predict(const PredictArguments& options, const std::string& command_line) {
  return run_job(options.model.configuration, [&](Job& job) {
    Configuration configuration = job.configuration;
    const PredictKind kind = kind_of(configuration.data);
    const bool images = kind == PredictKind::kImages;
    WindowOptions windows;
    together(job.world, [&] {
      refuse_options(options, kind);
      check_placeholders(
          "--output", options.output,
          kind == PredictKind::kFields ? std::vector<std::string>{"start"} : std::vector<std::string>{});
      keep_configuration(options.model.configuration, {{"--output", options.output}});
      if (images) {
        windows = windows_of(options.windows, configuration.data);
      } else {
        require_one_checkpoint(options.model);
      }
      if (images && !options.classes.empty() && configuration.data.classes == 0)
        throw ConfigError("command line: --classes is for targets that are labels, with data.classes");
      if (options.skip_existing && options.overwrite)
        throw ConfigError("command line: --skip-existing leaves what --overwrite replaces; name one of them");
    });
    if (!options.input.empty()) {
      together(job.world, [&] {
        refuse_own_files(configuration.data);
        configuration.data.files = from_here(options.input);
      });
    }
    std::unique_ptr<RestartFile> restart;
    ForecastOptions forecasts;
    if (kind == PredictKind::kFields) {
      together(job.world, [&] {
        restart = prepare_forecasts(options, configuration);
        forecasts = forecasts_of(options, restart.get());
      });
    }
    if (kind == PredictKind::kSequences) configuration.validation.rollout = options.steps;
    DataUse inputs_only;
    inputs_only.train = inputs_only.valid = false;
    TrainedModels models;
    const auto open = [&] {
      models = open_models(configuration, job.folder, options.model.checkpoints,
                           parse_weights(options.model.average), inputs_only, job.world, job.log);
    };
    std::vector<std::string> unread;
    try {
      open();
    } catch (const AgreedError& error) {
      if (error.code() != ExitCode::kData || !images || image_format(options.output)) throw;
      unread = leave_out_unreadable(configuration.data, job.folder, job.world);
      if (unread.empty()) throw;
      open();
    }
    const std::map<std::string, std::string> attributes = {
        {"title", (images ? "Predictions of " : "Forecasts of ") + configuration.name},
        {"history", utc_stamp() + ": " + command_line + " (jigsaw-train " JIGSAW_VERSION ")"}};
    if (images) {
      write_image_predictions(
          models,
          {options.output, options.overwrite, windows,
           options.classes == "probabilities" ? ClassOutput::kProbabilities : ClassOutput::kLabels,
           attributes, options.skip_existing, unread},
          job.log);
      return ExitCode::kDone;
    }
    // Until now there was nothing to keep, and they ended it; from now on no rank is ended by what the others
    // outlive.
    const std::atomic<int>* const stop = &keep_stop_signals();
    together(job.world, [] {});
    if (kind == PredictKind::kSequences) {
      const SequenceForecastOptions sequences{
          options.output,    options.overwrite, options.steps, std::max(options.every, 1), options.start_step,
          options.variables, options.levels,    attributes,    options.skip_existing,      stop};
      return write_sequence_forecasts(models.front(), sequences, job.log) ? ExitCode::kStopped
                                                                          : ExitCode::kDone;
    }
    forecasts.attributes = attributes;
    forecasts.stop = stop;
    return write_forecasts(models.front(), forecasts, job.log) ? ExitCode::kStopped : ExitCode::kDone;
  });
}

}  // namespace

std::function<ExitCode()> declare_predict(const CommandOptions& command, const Invocation& invocation) {
  auto options = std::make_shared<PredictArguments>();
  add_model(command, options->model).required();
  command
      .add_option("--output", options->output,
                  "The NetCDF file to write, of --points also a table (.csv); of sequences a file .nc or "
                  ".h5, or a folder; of images a file .h5, .nc, "
                  ".nii or .nii.gz, or a folder")
      .required();
  command.add_flag("--overwrite", options->overwrite, "Replace the file if it is there");
  command.add_flag(
      "--skip-existing", options->skip_existing,
      "Leave alone an output that is there, but for a forecast that a signal ended early, which is made "
      "anew; of several inputs make the outputs that lack");
  command.add_option("--input", options->input, "Files or patterns in place of data.files");
  command.add_option("--steps", options->steps, "Steps of each forecast, of data.lead_hours each")
      .within(1, 100'000);
  add_members(command, options->members);
  const CommandOption start =
      command.add_option("--start", options->starts,
                         "Times that forecasts start from, like 2019-03-01T06:00; 2019-03-01 is the first "
                         "time of that day; latest: the newest of which all inputs are there");
  command
      .add_option("--start-step", options->start_step,
                  "Of sequences: the state that forecasts start from, from 0 on; default: the first whose "
                  "inputs are there")
      .within(0, 1'000'000'000);
  const CommandOption period =
      command
          .add_option(
              "--period", options->period,
              "Start from every time of the configuration's data.train or data.valid; the default: valid")
          .one_of({"train", "valid"})
          .excludes(start);
  command
      .add_option("--continue", options->go_on,
                  "Make --steps more of the forecasts in this file, from the state that predict kept beside "
                  "it; with --start of those that are named")
      .not_empty()
      .excludes(period);
  command
      .add_option("--restart", options->restart,
                  "Whether OUTPUT.restart keeps the state that forecasts end in, for --continue: auto (of "
                  "several steps from --start or --continue; the default), always or never")
      .one_of({"auto", "always", "never"});
  CommandOption every = command.add_option(
      "--every", options->every, "Write steps N, 2 N, … of each forecast only, counted from its start");
  every.within(1, 100'000);
  command
      .add_option("--mean", options->mean,
                  "Write means, with bounds, in place of steps: over N steps each, or over each whole day, "
                  "month, season or year of the calendar")
      .not_empty()
      .excludes(every);
  command.add_flag("--time-series", options->time_series,
                   "Write the forecast from one start along one dimension, time, which is what it is of");
  command
      .add_option("--points", options->points,
                  "Write the forecasts at these places in place of fields: a table with columns name, "
                  "latitude and longitude (CSV), or a NetCDF file of stations")
      .not_empty();
  command
      .add_option("--interpolation", options->interpolation,
                  "How --points are made of the grid's points: linear between the four around each (the "
                  "default), or nearest")
      .one_of({"linear", "nearest"});
  command
      .add_option("--stop-outside", options->stop_outside,
                  "End forecasts before the step at which a state lies more than so many deviations beyond "
                  "the values that the model was trained on, such as 5")
      .positive();
  command.add_option("--variables", options->variables, "Write these only");
  command.add_option("--levels", options->levels,
                     "Of variables on levels, of sequences with channels, write these only");
  command.add_flag("--split-levels", options->split_levels,
                   "Write each level as a variable of its own, as t_850: for CDO, whose variables have "
                   "four dimensions at most");
  add_windows(command, options->windows);
  command
      .add_option("--classes", options->classes,
                  "Of images with classes write labels (the default) or probabilities")
      .one_of({"labels", "probabilities"});
  return [options, &invocation] { return run_predict(*options, invocation.command_line); };
}

}  // namespace jigsaw
