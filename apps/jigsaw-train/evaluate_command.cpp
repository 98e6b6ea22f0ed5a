#include "base/error.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "commands.h"
#include "predict/evaluation.h"
#include "predict/image_evaluation.h"

namespace jigsaw {

namespace {

/// The parts of the data that are scored.
std::vector<DataPart> parts_of(const DataOptions& data, const std::vector<std::string>& period) {
  if (period.size() == 1 && period[0] == "train") return data.train;
  if (period.size() == 1 && period[0] == "valid") return data.valid;
  const std::optional<DatePeriod> dates =
      period.size() == 2 ? parse_dates(period[0], period[1]) : std::nullopt;
  if (data.of_images())
    throw ConfigError(
        concat("command line: --period ", join(period, " "), " must be train or valid for images"));
  if (!dates || dates->last < dates->first) {
    throw ConfigError(concat("command line: --period ", join(period, " "),
                             " must be train, valid, or two dates such as 2019-03-25 2019-03-31"));
  }
  return {*dates};
}

/// Options of one task that mean nothing for the other.
void refuse_options(const EvaluateCommand& command, bool images) {
  const std::vector<std::pair<const char*, bool>> of_forecasts = {{"--leads", command.leads > 0},
                                                                  {"--region", !command.regions.empty()}},
                                                  of_images = {
                                                      {"--overlap", command.overlap.has_value()},
                                                      {"--data-range", command.data_range.has_value()}};
  for (const auto& [option, given] : images ? of_forecasts : of_images) {
    if (given)
      throw ConfigError(concat("command line: ", option, " is for ", images ? "forecasts" : "images",
                               ", and data.task is that of ", images ? "images" : "forecasts"));
  }
}

}  // namespace

ExitCode run_evaluate(const EvaluateCommand& command) {
  return run_job(command.model.configuration, [&](Job& job) {
    Configuration configuration = job.configuration;
    if (command.leads > 0) configuration.validation.rollout = command.leads;
    const bool images = configuration.data.of_images();
    Weights weights = Weights::kAuto;
    together(job.world, [&] {
      refuse_options(command, images);
      configuration.data.valid = parts_of(configuration.data, command.period);
      weights = parse_weights(command.model.average);
    });
    DataUse validation_only;
    validation_only.train = false;
    TrainedModel model(configuration, job.folder, command.model.checkpoint, weights, validation_only,
                       job.world, job.log);
    if (images) {
      evaluate_images(model,
                      {command.json, command.netcdf, command.overwrite, command.overlap.value_or(0.25),
                       command.data_range, "Scores of " + configuration.name},
                      job.log);
      return ExitCode::kDone;
    }
    evaluate_forecasts(
        model,
        {command.json, command.netcdf, command.overwrite, command.regions, "Scores of " + configuration.name},
        job.log);
    return ExitCode::kDone;
  });
}

}  // namespace jigsaw
