#include "base/error.h"
#include "commands.h"
#include "predict/forecast.h"

namespace jigsaw {

namespace {

struct Options {
  ModelArguments model;
  std::string output;
  bool overwrite = false;
  int steps = 1;
  std::vector<std::string> starts;
  std::string period = "valid";
  std::vector<std::string> variables;
  std::vector<double> levels;
  bool split_levels = false;
};

/// Writes what a model predicts, in physical units. Errors end as those of training do.
ExitCode run_predict(const Options& options, const std::string& command_line) {
  return run_job(options.model.configuration, [&](Job& job) {
    Configuration configuration = job.configuration;
    configuration.validation.rollout = options.steps;
    DataUse inputs_only;
    inputs_only.train = inputs_only.valid = false;
    TrainedModel model(configuration, job.folder, options.model.checkpoint,
                       parse_weights(options.model.average), inputs_only, job.world, job.log);
    ForecastOptions forecast{options.output, options.overwrite,    options.steps,
                             options.starts, options.period,       options.variables,
                             options.levels, options.split_levels, {}};
    forecast.attributes = {{"title", "Forecasts of " + configuration.name},
                           {"history", "jigsaw-train " JIGSAW_VERSION ": " + command_line}};
    write_forecasts(model, forecast, job.log);
    return ExitCode::kDone;
  });
}

}  // namespace

std::function<ExitCode()> declare_predict(CLI::App& command, const Invocation& invocation) {
  auto options = std::make_shared<Options>();
  add_model(command, options->model);
  command.add_option("--output", options->output, "The NetCDF file to write")->required();
  command.add_flag("--overwrite", options->overwrite, "Replace the file if it is there");
  command.add_option("--steps", options->steps, "Steps of each forecast, of data.lead_hours each")
      ->check(CLI::Range(1, 100'000));
  auto* start = command.add_option("--start", options->starts,
                                   "Times that forecasts start from, like 2019-03-01T06:00");
  command
      .add_option("--period", options->period,
                  "Start from every time of the configuration's data.train or data.valid; the default: valid")
      ->check(CLI::IsMember({"train", "valid"}))
      ->excludes(start);
  command.add_option("--variables", options->variables, "Write these only");
  command.add_option("--levels", options->levels, "Of variables on levels write these only");
  command.add_flag("--split-levels", options->split_levels,
                   "Write each level as a variable of its own, as t_850: for CDO, whose variables have "
                   "four dimensions at most");
  return [options, &invocation] { return run_predict(*options, invocation.command_line); };
}

}  // namespace jigsaw
