#include "base/text.h"
#include "comm/agreement.h"
#include "comm/record/record.h"
#include "commands.h"
#include "job.h"
#include "predict/batch_file.h"
#include "train/training_batches.h"
#include "train/validation.h"

namespace jigsaw {

namespace {

constexpr int kMostBatches = 1'000'000'000;

struct BatchArguments {
  ConfigArguments configuration;
  std::string output;
  bool overwrite = false;
  int step = 1;   ///< of training
  int valid = 0;  ///< the batch of the validation, from 1 on; 0: one of training
};

std::vector<Batch> training_parts(OpenedRun& run, std::int64_t step, const Context& host) {
  TrainingBatches batches(run.configuration(), run.objective(), run.placed());
  const std::int64_t parts = run.configuration().train.accumulate;
  std::vector<Batch> all;
  for (std::int64_t part = 0; part < parts; ++part)
    all.push_back(batches.read((step - 1) * parts + part, host));
  return all;
}

/// Its leads, which are read one by one, in one.
Batch validation_batch(OpenedRun& run, std::int64_t number, const Context& host) {
  if (!run.validates()) throw ConfigError("--valid-batch needs data.valid, and validation.every above 0");
  Validation validation(run);
  if (number > validation.batches()) {
    throw ConfigError(concat("command line: --valid-batch ", number,
                             " is behind the last: the validation has ", validation.batches(), " of them"));
  }
  Batch whole = validation.read(number - 1, 0, host);
  for (int lead = 1; lead < validation.leads(); ++lead) {
    Batch next = validation.read(number - 1, lead, host);
    std::ranges::move(next.targets, std::back_inserter(whole.targets));
    std::ranges::move(next.forcings, std::back_inserter(whole.forcings));
  }
  return whole;
}

/// Of the rank that reads samples whole, whatever mesh trains on them.
Configuration on_one_rank(Configuration configuration) {
  configuration.mesh.reset();
  configuration.zero = Zero::kNone;
  return configuration;
}

ExitCode run_batch(const BatchArguments& options) {
  return run_job(options.configuration, [&](Job& job) {
    together(job.world, [&] {
      keep_configuration(options.configuration, {{"--output", options.output}});
      if (job.world.size() == 1) return;
      throw ConfigError(concat("command line: batch is for one rank, which reads samples whole, not for ",
                               job.world.size()));
    });
    const Configuration configuration = on_one_rank(job.configuration);
    DataUse use;
    use.pass.cache = cache_folder();
    tell_statistics(use.pass, job.log);
    auto objective = open_objective(configuration, job.folder, job.world, use);
    together(job.world, [&] {
      // The model says what is read of a sample, and needs no memory for that.
      Context meta = Context::make_meta();
      const auto record = make_record_communicator(meta, 0, 1);
      OpenedRun run(configuration, std::move(objective), *record);
      OutputFile output(options.output, options.overwrite, "--output", run.data().paths());
      const Context host = job.world.context().host();
      write_batch(run,
                  options.valid > 0 ? std::vector{validation_batch(run, options.valid, host)}
                                    : training_parts(run, options.step, host),
                  host, output);
      const std::int64_t bytes = output.commit();
      job.log.info(concat("wrote ", options.output, " (", human_bytes(bytes), "): ",
                          options.valid > 0 ? concat("batch ", options.valid, " of the validation")
                                            : concat("the batch of training step ", options.step)));
    });
    return ExitCode::kDone;
  });
}

}  // namespace

std::function<ExitCode()> declare_batch(const CommandOptions& command, const Invocation& /*invocation*/) {
  auto options = std::make_shared<BatchArguments>();
  add_configuration(command, options->configuration).required();
  command.add_option("--output", options->output, "The NetCDF file to write").required().not_empty();
  command.add_flag("--overwrite", options->overwrite, "Replace a file that is there");
  const auto step =
      command.add_option("--step", options->step, "Of training, from 1 on, whose batch is written; default 1")
          .within(1, kMostBatches);
  command.add_option("--valid-batch", options->valid, "In place of that a batch of the validation, from 1 on")
      .within(1, kMostBatches)
      .excludes(step);
  return [options] { return run_batch(*options); };
}

}  // namespace jigsaw
