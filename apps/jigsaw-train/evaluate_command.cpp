#include "base/error.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "commands.h"
#include "predict/evaluation.h"

namespace jigsaw {

namespace {

/// The parts of the data that are scored.
std::vector<DataPart> parts_of(const DataOptions& data, const std::vector<std::string>& period) {
  if (period.size() == 1 && period[0] == "train") return data.train;
  if (period.size() == 1 && period[0] == "valid") return data.valid;
  const std::optional<DatePeriod> dates =
      period.size() == 2 ? parse_dates(period[0], period[1]) : std::nullopt;
  if (!dates || dates->last < dates->first) {
    throw ConfigError(concat("command line: --period ", join(period, " "),
                             " must be train, valid, or two dates such as 2019-03-25 2019-03-31"));
  }
  return {*dates};
}

}  // namespace

ExitCode run_evaluate(const EvaluateCommand& command) {
  return run_job(command.model.configuration, [&](Job& job) {
    Configuration configuration = job.configuration;
    if (command.leads > 0) configuration.validation.rollout = command.leads;
    Weights weights = Weights::kAuto;
    together(job.world, [&] {
      configuration.data.valid = parts_of(configuration.data, command.period);
      weights = parse_weights(command.model.average);
    });
    DataUse validation_only;
    validation_only.train = false;
    TrainedModel model(configuration, job.folder, command.model.checkpoint, weights, validation_only,
                       job.world, job.log);
    evaluate_forecasts(model,
                       {command.json, command.netcdf, command.overwrite, command.regions,
                        "Scores of " + configuration.name, command.climatology},
                       job.log);
    return ExitCode::kDone;
  });
}

}  // namespace jigsaw
