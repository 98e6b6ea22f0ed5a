#include <filesystem>

#include "base/error.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "commands.h"
#include "predict/forecast.h"
#include "predict/image_prediction.h"

namespace jigsaw {

namespace {

/// Options of one task that mean nothing for the other.
void refuse_options(const PredictCommand& command, bool images) {
  const std::vector<std::pair<const char*, bool>> of_forecasts = {{"--start", !command.starts.empty()},
                                                                  {"--period", !command.period.empty()},
                                                                  {"--steps", command.steps != 1},
                                                                  {"--variables", !command.variables.empty()},
                                                                  {"--levels", !command.levels.empty()},
                                                                  {"--split-levels", command.split_levels}},
                                                  of_images = {{"--overlap", command.overlap.has_value()},
                                                               {"--classes", !command.classes.empty()}};
  for (const auto& [option, given] : images ? of_forecasts : of_images) {
    if (given)
      throw ConfigError(concat("command line: ", option, " is for ", images ? "forecasts" : "images",
                               ", and data.task is that of ", images ? "images" : "forecasts"));
  }
}

void refuse_own_files(const DataOptions& data) {
  for (const VariableOptions& variable : data.variables) {
    if (variable.files.empty()) continue;
    throw ConfigError(concat("command line: --input replaces data.files, but ", variable.name,
                             " has files of its own; give both with --set"));
  }
}

/// Files of the command line are found from the working folder.
std::vector<std::string> from_here(const std::vector<std::string>& patterns) {
  std::vector<std::string> absolute;
  for (const std::string& pattern : patterns)
    absolute.push_back(std::filesystem::absolute(pattern).lexically_normal().string());
  return absolute;
}

}  // namespace

ExitCode run_predict(const PredictCommand& command) {
  return run_job(command.model.configuration, [&](Job& job) {
    Configuration configuration = job.configuration;
    const bool images = configuration.data.of_images();
    together(job.world, [&] {
      refuse_options(command, images);
      if (images && !command.classes.empty() && configuration.data.classes == 0)
        throw ConfigError("command line: --classes is for targets that are labels, with data.classes");
    });
    if (!command.input.empty()) {
      together(job.world, [&] { refuse_own_files(configuration.data); });
      configuration.data.files = from_here(command.input);
    }
    if (!images) configuration.validation.rollout = command.steps;
    DataUse inputs_only;
    inputs_only.train = inputs_only.valid = false;
    TrainedModel model(configuration, job.folder, command.model.checkpoint,
                       parse_weights(command.model.average), inputs_only, job.world, job.log);
    std::map<std::string, std::string> attributes = {
        {"title", (images ? "Predictions of " : "Forecasts of ") + configuration.name},
        {"history", "jigsaw-train " JIGSAW_VERSION ": " + command.command_line}};
    if (images) {
      ImageOptions options{
          command.output, command.overwrite, command.overlap.value_or(0.25),
          command.classes == "probabilities" ? ClassOutput::kProbabilities : ClassOutput::kLabels,
          attributes};
      write_image_predictions(model, options, job.log);
      return ExitCode::kDone;
    }
    const ForecastOptions options{command.output, command.overwrite,    command.steps,
                                  command.starts, command.period,       command.variables,
                                  command.levels, command.split_levels, attributes};
    write_forecasts(model, options, job.log);
    return ExitCode::kDone;
  });
}

}  // namespace jigsaw
