#include <cmath>
#include <cstdlib>

#include "base/text.h"
#include "commands.h"
#include "evaluate/climatology_scores.h"
#include "report/run_files.h"
#include "stop_signals.h"
#include "train/trainer.h"
#include "version.h"

namespace jigsaw {

void add_training(const CommandOptions& app, TrainArguments& options) {
  add_configuration(app, options.configuration);
  app.add_option("--resume", options.resume,
                 "auto: go on from the newest whole checkpoint, if any; never; or a checkpoint's folder")
      .not_empty();
  app.add_flag("--allow-change", options.allow_change, "Resume although keys changed that decide the result");
  app.add_flag("--no-verify", options.no_verify,
               "Load a checkpoint without reading all of it to check its digests");
  app.add_option("--init-from", options.init_from,
                 "Begin with the parameters of this checkpoint, by name, unless there is one to resume from")
      .not_empty();
  app.add_option("--max-minutes", options.max_minutes, "End in time with a checkpoint, exit code 75")
      .checked([](const std::string& text) {
        char* end = nullptr;
        const double minutes = std::strtod(text.c_str(), &end);
        return !text.empty() && *end == '\0' && std::isfinite(minutes) && minutes > 0
                   ? ""
                   : "must be a number of minutes above 0, not " + text;
      });
  app.add_option("--trace", options.trace, "Write a trace of some steps, for https://ui.perfetto.dev")
      .not_empty();
  app.add_flag("--profile", options.profile,
               "Print where these steps go: operations, layers, communication, data");
  app.add_option(
         "--trace-steps", options.trace_steps,
         "Which: 7, 7-9, 7-900:10 (every tenth), or all; default: the second to the fourth that are made")
      .not_empty();
  app.add_flag("--find-nan", options.find_nan,
               "Replay a step whose loss or gradient is not finite, or leaps, and name where that begins");
}

std::function<ExitCode()> declare_train(const CommandOptions& command, const Invocation& invocation) {
  command.fallthrough();
  return [&invocation] { return run_training(invocation.train, invocation.command_line); };
}

ExitCode run_training(const TrainArguments& options, const std::string& command_line) {
  return run_training(options, command_line, [&](Communicator& /*world*/) { return options.configuration; });
}

ExitCode run_training(const TrainArguments& options, const std::string& command_line,
                      const ChooseConfiguration& choose) {
  return run_job(choose, [&](Job& job) {
    RunOptions run;
    run.config_folder = job.folder;
    run.command_line = command_line;
    for (const auto& [name, version] : versions()) run.versions[name] = version;
    run.resume = options.resume;
    run.allow_change = options.allow_change;
    run.verify = options.no_verify ? Verify::kSizesOnly : Verify::kBytes;
    run.init_from = options.init_from;
    run.max_minutes = options.max_minutes;
    run.trace = {options.trace, options.profile, options.trace_steps, job.configuration.output};
    run.find_nan = options.find_nan;
    RunFiles files({job.configuration.report, job.configuration.tensorboard}, job.log);
    ClimatologyScores climatology(job.log);
    if (job.configuration.validation.climatology) run.observers.push_back(&climatology);
    if (job.configuration.report || job.configuration.tensorboard) run.observers.push_back(&files);
    run.on_watched = [&job] { job.watch.reset(); };
    tell_mesh(job, job.world.size());
    Trainer trainer(job.configuration, run, job.world, job.log);
    trainer.stop_on(keep_stop_signals());  // until now there was nothing to save, and they ended it
    return trainer.run();
  });
}

}  // namespace jigsaw
