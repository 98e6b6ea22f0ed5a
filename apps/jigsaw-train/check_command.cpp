#include <array>

#include "base/progress_bar.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "comm/record/record.h"
#include "commands.h"
#include "images/label_scan.h"
#include "kernels/cuda_context.h"
#include "optim/optimizer.h"
#include "printed.h"
#include "samples/state_limits.h"
#include "train/checkpointer.h"
#include "train/data_remarks.h"
#include "train/opening_summary.h"
#include "train/preflight.h"
#include "train/repeated_times.h"
#include "train/run_directory.h"
#include "train/training_batches.h"
#include "train/training_state.h"
#include "train/validation.h"
#include "version.h"

namespace jigsaw {

namespace {

/// Reads no data in whole, which may take hours.
Opening opening_of(Job& job) {
  const std::string& output = job.configuration.output;
  Opening opening{[&job, &output] {
                    together(job.world, [&] {
                      if (job.world.rank() == 0) RunDirectory::check(output);
                    });
                  },
                  &job.log, cache_folder()};
  opening.use.pass.spared = true;
  return opening;
}

/// The labels of all parts, each rank a share.
void check_labels(OpenedRun& run, Log& log) {
  const auto* images = dynamic_cast<const ImageData*>(&run.data());
  if (images == nullptr || images->options().classes == 0) return;
  LabelScan scan(*images, run.world());
  {
    ProgressBar bar(log, "labels");
    scan.wait([&](double part) { bar.update(part); });
  }
  if (const std::string remark = scan.remark(); !remark.empty()) log.warn(remark);
}

/// Files that are in another unit than they say, where statistics are given, or kept from a run before.
void check_units(OpenedRun& run, Log& log) {
  auto* forecasts = dynamic_cast<Dataset*>(&run.data());
  if (forecasts == nullptr) return;
  const DataOptions& options = forecasts->options();
  std::vector<Period> periods;
  for (const auto& [key, parts] :
       {std::pair{"data.train", &options.train}, std::pair{"data.valid", &options.valid}}) {
    const std::vector<Period> more = forecasts->files().periods(*parts, key);
    periods.insert(periods.end(), more.begin(), more.end());
  }
  for (const std::string& warning : unit_warnings(*forecasts, periods, run.world())) log.warn(warning);
}

/// States that the files hold more than once.
void check_repeats(OpenedRun& run, Log& log) {
  if (auto* forecasts = dynamic_cast<Dataset*>(&run.data()))
    require_equal_repeats(*forecasts, run.world(), log);
}

/// Reads what the first step would, into memory of `host`.
Batch read_first(OpenedRun& run, const Context& host) {
  Batch batch;
  together(run.world(), [&] {
    batch = TrainingBatches(run.configuration(), run.objective(), run.placed()).read(0, host);
  });
  return batch;
}

/// Reads the first batch of the validation.
void read_validation(OpenedRun& run, const Context& host) {
  Validation validation(run);
  for (int lead = 0; lead < validation.leads(); ++lead) validation.read(0, lead, host);
}

/// The same data, read here, with the model of the first of `ranks` ranks, planned on shapes alone.
void check_planned(Job& job, int ranks) {
  if (job.world.size() > 1) {
    throw ConfigError(concat("command line: --ranks ", ranks, " plans a job of so many ranks; start ", ranks,
                             " or one, not ", job.world.size()));
  }
  Context meta = Context::make_meta();
  const auto record = make_record_communicator(meta, 0, ranks);
  OpenedRun run(job.configuration, job.folder, job.world, *record, opening_of(job));
  const Optimizer optimizer(run.placed().rank(), run.placed().model().parameters(),
                            job.configuration.optimizer);
  tell_opening(job.log, run, ranks);
  tell_missing(job.log, read_first(run, job.world.context().host()), run);
  if (run.validates()) read_validation(run, job.world.context().host());
  check_labels(run, job.log);
  check_units(run, job.log);
  check_repeats(run, job.log);
  DataRemarks(run.data(), run.world(), job.log).tell();
}

void check_started(Job& job) {
  OpenedRun run(job.configuration, job.folder, job.world, opening_of(job));
  std::unique_ptr<Optimizer> optimizer;
  together(job.world, [&] {
    optimizer = std::make_unique<Optimizer>(run.placed().rank(), run.placed().model().parameters(),
                                            job.configuration.optimizer);
  });
  tell_opening(job.log, run, job.world.size());
  preflight(run.placed().rank(), version_text(),
            output_need(job.configuration, *optimizer, run.total_steps(), job.world), job.log);
  tell_missing(job.log, read_first(run, job.world.context().host()), run);
  if (run.validates()) Validation(run).rehearse();
  check_labels(run, job.log);
  check_units(run, job.log);
  check_repeats(run, job.log);
  DataRemarks(run.data(), run.world(), job.log).tell();
}

struct CheckArguments {
  ConfigArguments configuration;
  int ranks = 0;  ///< to plan for; 0: those that were started
  std::string resume = "auto";
  bool allow_change = false;
};

/// What the run would begin with: nothing, or a checkpoint, of which sizes of files and the keys of its run
/// are looked at.
std::string beginning(const CheckArguments& options, const Job& job) {
  const std::string folder = job.configuration.output + "/checkpoints";
  std::optional<FoundCheckpoint> found;
  together(job.world, [&] {
    found = checkpoint_to_resume(folder, options.resume, Verify::kSizesOnly, job.world, job.log);
    if (!found || options.allow_change) return;
    const Json& extra = found->stored.manifest.extra;
    if (extra.is_object() && extra.contains("configuration"))
      require_same_keys(extra.at("configuration"), job.configuration);
  });
  if (!found) return "begin";
  return concat("go on from ", found->path, " at step ", found->stored.manifest.step);
}

/// Opens all that a run would need but statistics and a checkpoint's values, plans, reads a batch of training
/// and all labels, runs a batch of validation, and ends.
ExitCode run_check(const CheckArguments& options) {
  return run_job(options.configuration, [&](Job& job) {
    const int ranks = options.ranks > 0 ? options.ranks : job.world.size();
    tell_mesh(job, ranks);
    if (ranks != job.world.size()) {
      const CudaMachine machine = cuda_machine();
      if (job.configuration.device == DeviceChoice::kAuto && machine.built && machine.devices == 0) {
        job.log.info(concat("planned as for processors: plan --set device=cuda --ranks ", ranks,
                            " plans for GPUs that are elsewhere"));
      }
      together(job.world, [&] { check_planned(job, ranks); });
    } else {
      check_started(job);
    }
    job.log.info(concat("checked: a run would ", beginning(options, job)));
    together(job.world, [] { require_printed(); });
    return ExitCode::kDone;
  });
}

}  // namespace

std::function<ExitCode()> declare_check(const CommandOptions& command, const Invocation& /*invocation*/) {
  auto options = std::make_shared<CheckArguments>();
  add_configuration(command, options->configuration).required();
  command
      .add_option("--ranks", options->ranks,
                  "Plan for so many ranks, of which this one stands for the first, unless they are started")
      .within(1, 1 << 20);
  command
      .add_option("--resume", options->resume,
                  "As of training: auto, never, or the checkpoint that the run would go on from")
      .not_empty();
  command.add_flag("--allow-change", options->allow_change,
                   "As of training: keys may differ from those of the run that would be resumed");
  return [options] { return run_check(*options); };
}

}  // namespace jigsaw
