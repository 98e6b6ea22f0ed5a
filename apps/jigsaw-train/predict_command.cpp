#include "base/error.h"
#include "commands.h"
#include "predict/forecast.h"

namespace jigsaw {

ExitCode run_predict(const PredictCommand& command) {
  return run_job(command.model.configuration, [&](Job& job) {
    Configuration configuration = job.configuration;
    configuration.validation.rollout = command.steps;
    DataUse inputs_only;
    inputs_only.train = inputs_only.valid = false;
    TrainedModel model(configuration, job.folder, command.model.checkpoint,
                       parse_weights(command.model.average), inputs_only, job.world, job.log);
    ForecastOptions options{command.output, command.overwrite,    command.steps,
                            command.starts, command.period,       command.variables,
                            command.levels, command.split_levels, {}};
    options.attributes = {{"title", "Forecasts of " + configuration.name},
                          {"history", "jigsaw-train " JIGSAW_VERSION ": " + command.command_line}};
    write_forecasts(model, options, job.log);
    return ExitCode::kDone;
  });
}

}  // namespace jigsaw
