#include <filesystem>

#include "base/error.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "commands.h"
#include "predict/forecast.h"
#include "predict/image_prediction.h"

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
  std::string period;  ///< train or valid; "": valid
  std::vector<std::string> variables;
  std::vector<double> levels;
  bool split_levels = false;
  std::optional<double> overlap;  ///< of windows over images
  std::string classes;            ///< of images: labels or probabilities; "": labels
};

/// Options of one task that mean nothing for the other.
void refuse_options(const PredictArguments& options, bool images) {
  const std::vector<std::pair<const char*, bool>> of_forecasts = {{"--members", options.members > 0},
                                                                  {"--start", !options.starts.empty()},
                                                                  {"--period", !options.period.empty()},
                                                                  {"--steps", options.steps != 1},
                                                                  {"--variables", !options.variables.empty()},
                                                                  {"--levels", !options.levels.empty()},
                                                                  {"--split-levels", options.split_levels}},
                                                  of_images = {{"--overlap", options.overlap.has_value()},
                                                               {"--classes", !options.classes.empty()}};
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
  for (const std::string& pattern : patterns) {
    if (pattern.empty())
      throw ConfigError(
          "command line: --input must hold names or patterns of files, and one of them is \"\"");
    absolute.push_back(std::filesystem::absolute(pattern).lexically_normal().string());
  }
  return absolute;
}

/// Writes what a model predicts, in physical units. Errors end as those of training do.
ExitCode run_predict(const PredictArguments& options, const std::string& command_line) {
  return run_job(options.model.configuration, [&](Job& job) {
    Configuration configuration = job.configuration;
    const bool images = configuration.data.of_images();
    together(job.world, [&] {
      refuse_options(options, images);
      if (images && !options.classes.empty() && configuration.data.classes == 0)
        throw ConfigError("command line: --classes is for targets that are labels, with data.classes");
    });
    if (!options.input.empty()) {
      together(job.world, [&] {
        refuse_own_files(configuration.data);
        configuration.data.files = from_here(options.input);
      });
    }
    if (!images) {
      configuration.validation.rollout = options.steps;
      together(job.world, [&] { set_members(options.members, configuration); });
    }
    DataUse inputs_only;
    inputs_only.train = inputs_only.valid = false;
    TrainedModel model(configuration, job.folder, options.model.checkpoint,
                       parse_weights(options.model.average), inputs_only, job.world, job.log);
    const std::map<std::string, std::string> attributes = {
        {"title", (images ? "Predictions of " : "Forecasts of ") + configuration.name},
        {"history", "jigsaw-train " JIGSAW_VERSION ": " + command_line}};
    if (images) {
      write_image_predictions(
          model,
          {options.output, options.overwrite, options.overlap.value_or(0.25),
           options.classes == "probabilities" ? ClassOutput::kProbabilities : ClassOutput::kLabels,
           attributes},
          job.log);
      return ExitCode::kDone;
    }
    write_forecasts(model,
                    {options.output, options.overwrite, options.steps, options.starts, options.period,
                     options.variables, options.levels, options.split_levels, attributes},
                    job.log);
    return ExitCode::kDone;
  });
}

}  // namespace

std::function<ExitCode()> declare_predict(const CommandOptions& command, const Invocation& invocation) {
  auto options = std::make_shared<PredictArguments>();
  add_model(command, options->model);
  command
      .add_option("--output", options->output,
                  "The NetCDF file to write; of images a file .h5, .nc, .nii or .nii.gz, or a folder")
      .required();
  command.add_flag("--overwrite", options->overwrite, "Replace the file if it is there");
  command.add_option("--input", options->input, "Files or patterns in place of data.files");
  command.add_option("--steps", options->steps, "Steps of each forecast, of data.lead_hours each")
      .within(1, 100'000);
  add_members(command, options->members);
  const CommandOption start = command.add_option("--start", options->starts,
                                                 "Times that forecasts start from, like 2019-03-01T06:00");
  command
      .add_option("--period", options->period,
                  "Start from every time of the configuration's data.train or data.valid; the default: valid")
      .one_of({"train", "valid"})
      .excludes(start);
  command.add_option("--variables", options->variables, "Write these only");
  command.add_option("--levels", options->levels, "Of variables on levels write these only");
  command.add_flag("--split-levels", options->split_levels,
                   "Write each level as a variable of its own, as t_850: for CDO, whose variables have "
                   "four dimensions at most");
  add_overlap(command, options->overlap);
  command
      .add_option("--classes", options->classes,
                  "Of images with classes write labels (the default) or probabilities")
      .one_of({"labels", "probabilities"});
  return [options, &invocation] { return run_predict(*options, invocation.command_line); };
}

}  // namespace jigsaw
