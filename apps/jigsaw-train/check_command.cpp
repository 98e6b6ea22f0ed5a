#include "base/text.h"
#include "comm/agreement.h"
#include "comm/record/record.h"
#include "comm/self/self.h"
#include "commands.h"
#include "optim/optimizer.h"
#include "train/opened_run.h"
#include "train/training_batches.h"
#include "train/validation.h"

namespace jigsaw {

namespace {

void tell_data(Log& log, const SampleSource& data) {
  log.info(concat("data: ", data.count(Split::kTrain), " samples of training and ", data.count(Split::kValid),
                  " of validation on the grid ", data.grid().shape(), "; inputs ",
                  join(channel_names(data.channels().inputs), " "), "; targets ",
                  join(channel_names(data.channels().targets), " ")));
}

void tell_model(Log& log, const PlacedModel& placed) {
  std::int64_t parameters = 0;
  for (const ParameterBlock* block : placed.model().parameters()) {
    for (const auto& parameter : block->parameters()) parameters += parameter->shape().count();
  }
  const Arena& arena = placed.rank().context.arena();
  log.info(concat(
      "model: ", parameters, " parameters; mesh ", placed.description().dump(), ", on whose rank ",
      placed.mesh().world().rank(), " parameters and optimizer take ",
      human_bytes(arena.current_bytes(Purpose::kParameters) + arena.current_bytes(Purpose::kOptimizer))));
}

/// Reads what the first step and the first validation would, into memory of `host`.
void read_batches(OpenedRun& run, const Context& host) {
  together(run.world(), [&] {
    TrainingBatches(run.configuration(), run.objective(), run.placed()).read(0, host);
    if (run.validates()) Validation(run).read(0, host);
  });
}

/// The same data, read here, with the model of the first of `ranks` ranks, planned on shapes alone.
void check_planned(Job& job, int ranks) {
  if (job.world.size() > 1) {
    throw ConfigError(concat("command line: --ranks plans for ranks that are not there; start one, not ",
                             job.world.size()));
  }
  Context meta = Context::make_meta();
  const auto record = make_record_communicator(meta, 0, ranks);
  OpenedRun run(job.configuration, job.folder, job.world, *record);
  const Optimizer optimizer(run.placed().rank(), run.placed().model().parameters(),
                            job.configuration.optimizer);
  tell_data(job.log, run.data());
  tell_model(job.log, run.placed());
  read_batches(run, job.world.context());
}

void check_started(Job& job) {
  OpenedRun run(job.configuration, job.folder, job.world);
  std::unique_ptr<Optimizer> optimizer;
  together(job.world, [&] {
    optimizer = std::make_unique<Optimizer>(run.placed().rank(), run.placed().model().parameters(),
                                            job.configuration.optimizer);
  });
  tell_data(job.log, run.data());
  tell_model(job.log, run.placed());
  read_batches(run, job.world.context());
}

}  // namespace

ExitCode run_check(const CheckCommand& command) {
  return run_job(command.configuration, [&](Job& job) {
    if (command.ranks > 0) {
      together(job.world, [&] { check_planned(job, command.ranks); });
    } else {
      check_started(job);
    }
    job.log.info("checked: a run would begin");
    return ExitCode::kDone;
  });
}

}  // namespace jigsaw
