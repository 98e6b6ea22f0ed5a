#include "train/trainer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <utility>

#include "base/progress_bar.h"
#include "base/stop_signal.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "kernels/remarks.h"
#include "task/grid_warnings.h"
#include "train/best_so_far.h"
#include "train/changed_schedule.h"
#include "train/opening_summary.h"
#include "train/output_space.h"
#include "train/summary.h"

namespace jigsaw::inline train {

namespace {

/// Looking for the run directory costs a message to its file system.
constexpr double kSecondsBetweenLooks = 1;
/// Why a training ends before its last step.
std::string patience_text(const Configuration& config, std::int64_t validations) {
  return concat(counted(validations, "validation"), " in a row did not improve ", config.checkpoint.best,
                " (validation.patience)");
}

std::unique_ptr<Optimizer> open_optimizer(OpenedRun& run) {
  std::unique_ptr<Optimizer> optimizer;
  together(run.world(), [&] {
    optimizer = std::make_unique<Optimizer>(run.placed().rank(), run.placed().model().parameters(),
                                            run.configuration().optimizer);
  });
  return optimizer;
}

}  // namespace

Trainer::Trainer(const Configuration& configuration, const RunOptions& options, Communicator& world, Log& log)
    : options_(options),
      world_(world),
      log_(log),
      started_(now()),
      trace_(options_.trace, world),
      given_(inherited_statistics(configuration, options.resume, options.allow_change, options.init_from,
                                  world)),
      order_(inherited_order(configuration, options.resume, options.init_from, world)),
      run_(configuration, options.config_folder, world, opening(configuration)),
      remarks_(run_.data(), world, log),
      config_(run_.configuration()),
      steps_(run_.total_steps()),
      optimizer_(open_optimizer(run_)),
      step_(run_, *optimizer_, steps_),
      state_(run_, *optimizer_, log),
      batches_(config_, run_.objective(), run_.placed()),
      time_left_(steps_, run_.validates() ? config_.validation.every : 0, config_.checkpoint.every) {
  step_.before_update([this] { checkpointer_->copied(); });
  together(world_, [&] {
    if (run_.validates()) validation_ = std::make_unique<Validation>(run_);
  });
  if (options_.find_nan) nan_search_.emplace(run_, step_, log_);
  together(world_, [&] { resume(); });
  remarks_.tell();
  if (const std::string warning =
          space_warning(output_need(config_, *optimizer_, steps_ - state_.steps_done(), world_));
      !warning.empty())
    log_.warn(warning);
  measure_machine();
}

Trainer::~Trainer() = default;

/// What the ranks do in a second: by which transfers are cut into messages, and steps judged.
void Trainer::measure_machine() {
  const Backend backend = world_.context().backend();
  if (backend != Backend::kCpu && backend != Backend::kCuda) return;
  PlacedModel& placed = run_.placed();
  machine_ = machine_of_run(config_.machine, placed.rank(), placed.types().compute,
                            placed.plans().model().ranks_per_node, directory_->machine_path());
  if (world_.size() > 1) placed.plans().set_machine(std::make_shared<const Machine>(*machine_));
}

Opening Trainer::opening(const Configuration& configuration) {
  Opening opening{[this, &configuration] { together(world_, [&] { open_run_directory(configuration); }); },
                  &log_, cache_folder(), given_ ? &*given_ : nullptr};
  opening.use.like = order_;
  return opening;
}

void Trainer::open_run_directory(const Configuration& configuration) {
  directory_ = std::make_unique<RunDirectory>(configuration.output, world_, log_);
  log_.open(directory_->log_path());
  metrics_ = std::make_unique<MetricsLog>(directory_->metrics_path(), log_);
  checkpointer_ =
      std::make_unique<Checkpointer>(configuration.checkpoint, directory_->checkpoints_path(), world_, log_);
  progress_ = std::make_unique<Progress>(log_);
  if (configuration.watchdog_seconds > 0) open_watchdog(configuration);
  options_.on_watched();
}

void Trainer::open_watchdog(const Configuration& configuration) {
  WatchdogOptions options;
  options.seconds = configuration.watchdog_seconds;
  options.grace_seconds = std::min(options.grace_seconds, options.seconds);
  options.folder = directory_->path();
  options.rank = world_.rank();
  options.size = world_.size();
  options.heartbeat = heartbeat_;
  watchdog_ = std::make_unique<Watchdog>(options, world_.log(), [this](const std::string& report) {
    if (log_.speaks()) {
      log_.error(report);
    } else {  // the rank that usually does is the one that hangs
      print_to_stderr(concat("jigsaw-train: error: [rank ", world_.rank(), "] ", report));
    }
    world_.abort(static_cast<int>(ExitCode::kInternal));
  });
}

void Trainer::resume() {
  const TraceSpan span(TraceKind::kPhase, "load");
  const std::optional<FoundCheckpoint> found =
      checkpoint_to_resume(directory_->checkpoints_path(), options_.resume, options_.verify, world_, log_);
  if (found) {
    state_.restore(*found, options_.allow_change);
    go_on_behind(state_.seen());
    if (const std::string remark =
            changed_schedule(found->stored.manifest.extra, config_, state_.steps_done(), steps_);
        !remark.empty())
      log_.warn(remark);
    if (!options_.init_from.empty())
      log_.info("--init-from is not used: the run goes on from its own checkpoint");
  } else if (!options_.init_from.empty()) {
    with_checkpoint(options_.init_from, world_, options_.verify, [&](const FoundCheckpoint& init) {
      state_.initialise(init);
      if (const auto remark = inputs_remark(init, config_)) log_.warn(*remark);
    });
    tell_statistics(given_, config_.data.normalization.has_value(), run_.data().statistics(),
                    options_.init_from, log_);
    if (order_)
      for (const std::string& warning : place_warnings(run_.data(), *order_, options_.init_from))
        log_.warn(warning);
  } else if (!config_.init.skip.empty()) {
    log_.warn("init.skip has no effect: it counts only with --init-from; leave it out");
  }
  from_elsewhere_ = checkpointer_->begin(found ? &*found : nullptr);
  set_metrics_aside(found.has_value());
  metrics_->resume_at(state_.steps_done());
  directory_->write_config(to_json(config_), options_.versions, options_.command_line);
  const bool counts = !found || judges_as_before(found->stored.manifest.extra.value("configuration", Json()),
                                                 config_.checkpoint);
  const auto own = static_cast<double>(
      counts ? not_improved_in(metrics_->last("valid"), config_.checkpoint.best).value_or(0) : 0);
  not_improved_ = std::llround(world_.all_reduce(std::array{own}, ReduceOp::kMax)[0]);
}

/// Of a run whose batch size was another one before.
void Trainer::go_on_behind(const SamplesSeen& seen) {
  run_.go_on_behind(seen);
  batches_.go_on_behind(seen);
  steps_ = run_.total_steps();
  step_.set_steps(steps_);
  time_left_ = TimeLeft(steps_, run_.validates() ? config_.validation.every : 0, config_.checkpoint.every);
}

/// Lines of a history that the run leaves are kept where there are checkpoints of it, or must have been.
/// @param found  whether it goes on from a checkpoint.
void Trainer::set_metrics_aside(bool found) {
  const bool some_stay = checkpointer_->goes_on();
  if (some_stay && !checkpointer_->moved_aside()) return;
  std::int64_t least = config_.checkpoint.every;
  if (found || checkpointer_->moved_aside()) least = some_stay ? state_.steps_done() + 1 : 1;
  const std::string aside = least > 0 ? metrics_->set_aside(least, some_stay) : "";
  if (aside.empty()) return;
  const std::string now_in =
      concat("lines of metrics.jsonl that this run does not go on from are now in ", aside);
  if (found || checkpointer_->moved_aside()) return log_.info(now_in);
  log_.warn(concat("no checkpoint is in ", directory_->checkpoints_path(),
                   ", and the run begins anew, at step 1; ", now_in));
}

/// Said of the first batch that has one, for where data are missing there are often many.
void Trainer::note_empty_targets(const StepResult& result, std::int64_t step) {
  if (result.empty || result.empty_targets == 0 || empty_targets_noted_) return;
  empty_targets_noted_ = true;
  log_.warn(concat("step ", step, ": ", result.empty_targets,
                   result.empty_targets == 1 ? " sample of its batch has no valid target point and adds"
                                             : " samples of its batch have no valid target point and add",
                   " nothing to the loss; later ones are not reported"));
}

/// Loss and norm are global, so that all ranks skip together.
void Trainer::count_skipped(const StepResult& result, std::int64_t step) {
  state_.count(step, !result.finite && !result.empty);
  found_points_ = found_points_ || !result.empty;
  if (result.finite) return;
  if (result.empty) {
    log_.warn(concat("step ", step, " is skipped: no target of its batch has a valid point"));
    require_points(step);
    return;
  }
  const bool learned_nothing = step == steps_ && optimizer_->steps_done() == 0;
  if (learned_nothing || state_.skipped_in_row() > config_.train.max_skipped) {
    throw AgreedError(ExitCode::kNonFinite, 0,
                      concat("loss or gradient was not finite in ", counted(state_.skipped_in_row(), "step"),
                             " in a row, up to step ", step, "; a lower optimizer.learning_rate may help"));
  }
  log_.warn(concat("step ", step, " is skipped: loss ", result.loss, ", gradient norm ", result.norm,
                   options_.find_nan ? "" : "; --find-nan names the operation where that begins"));
}

/// A training that never found a point to learn from ends as soon as it has been twice through its data: two
/// passes hold a whole one, wherever they began.
void Trainer::require_points(std::int64_t step) {
  ++empty_steps_;
  if (found_points_ || optimizer_->steps_done() > 0) return;
  const double passes = static_cast<double>(empty_steps_) * static_cast<double>(config_.train.batch_size) /
                        static_cast<double>(run_.data().count(Split::kTrain));
  if (step < steps_ && passes < 2) return;
  throw AgreedError(
      ExitCode::kData, 0,
      concat("nothing was learned up to step ", step,
             ": no target of any batch has a valid point; see whether the files hold values of ",
             join(channel_names(run_.data().channels().targets), ", "), " in data.train"));
}

void Trainer::write_metrics(const Json& line) {
  metrics_->write(line);
  if (!log_.speaks()) return;
  for (RunObserver* observer : options_.observers) observer->metrics(line);
}

void Trainer::log_step(std::int64_t step, const StepResult& result, double seconds, double communication,
                       double flops) {
  if (step % config_.log_every == 0 || step == steps_ || validates_at(step)) {
    Json line = {{"kind", "train"},
                 {"step", step},
                 {"loss", result.loss},
                 {"learning_rate", result.rate},
                 {"grad_norm", result.norm},
                 {"step_seconds", seconds},
                 {"data_wait_seconds", result.data_wait},
                 {"communication_seconds", communication},
                 {"samples_per_second", static_cast<double>(config_.train.batch_size) / seconds}};
    if (config_.train.rollout.most() > 1) line["rollout"] = result.leads;
    if (result.device_seconds > 0) line["device_seconds"] = result.device_seconds;
    if (machine_) line["peak_share"] = flops / seconds / machine_->flops_per_second;
    line["time"] = utc_stamp(true);
    write_metrics(line);
  }
  show_step(step, result, seconds, flops);
}

void Trainer::show_step(std::int64_t step, const StepResult& result, double seconds, double flops) {
  if (!progress_->is_due(step, steps_, now())) return;
  ProgressState state{step, steps_, config_.loss.type(), result.loss, result.rate};
  state.samples_per_second = static_cast<double>(config_.train.batch_size) / seconds;
  if (machine_) state.peak_share = flops / seconds / machine_->flops_per_second;
  state.memory_bytes = peak_memory_bytes(world_.context());
  state.seconds_left = time_left_.after(step, true);
  progress_->update(state, now());
}

void Trainer::save(const std::optional<CheckpointScore>& score) {
  const TraceSpan span(TraceKind::kPhase, "save");
  const double before = now();
  saved_ = before;
  checkpointer_->save(
      {state_.steps_done(), run_.placed().description(), state_.manifest_extra(steps_), score},
      checkpoint_pieces(*optimizer_, Optimizer::Share::kSaved));
  time_left_.save(now() - before);
  apart_seconds_ += now() - before;
}

/// All ranks stop at the same place: when asked to, when what is ahead (seconds) would not end in time, or
/// when nobody could find what they write. They agree, too, whether checkpoint.minutes are over.
Trainer::Stop Trainer::should_stop(double ahead) {
  Stop mine = Stop::kNo;
  if (options_.max_minutes > 0 && now() - started_ + ahead > 60 * options_.max_minutes) mine = Stop::kLate;
  const int signal = options_.stop != nullptr ? options_.stop->load() : 0;
  if (signal != 0) mine = Stop::kAsked;
  if (now() - looked_ > kSecondsBetweenLooks || checkpointer_->failing())
    mine = std::max(mine, look_for_directory());
  constexpr int kSignals = 256;
  const int own = static_cast<int>(mine) * kSignals + signal;
  const double minutes = config_.checkpoint.every > 0 ? config_.checkpoint.minutes : 0;
  const bool over = minutes > 0 && now() - saved_ >= 60 * minutes;
  const auto agreed =
      world_.all_reduce(std::array{static_cast<double>(own), over ? 1.0 : 0.0}, ReduceOp::kMax);
  const auto greatest = static_cast<int>(agreed[0]);
  minutes_over_ = agreed[1] > 0;
  const auto stop = static_cast<Stop>(greatest / kSignals);
  if (stop == Stop::kGone) throw AgreedError(ExitCode::kCheckpoint, 0, gone_);
  if (stop == Stop::kLate) stop_cause_ = concat("--max-minutes ", options_.max_minutes);
  if (stop == Stop::kAsked) stop_cause_ = stop_signal_name(greatest % kSignals);
  return stop;
}

/// Rank 0 looks whether the run's files are where they belong: now and then, and when they cannot be written.
Trainer::Stop Trainer::look_for_directory() {
  looked_ = now();
  gone_ = directory_->gone(log_);
  return gone_.empty() ? Stop::kNo : Stop::kGone;
}

ExitCode Trainer::run() {
  first_step_ = state_.steps_done() + 1;
  const std::int64_t first = first_step_;
  for (RunObserver* observer : options_.observers) {
    observer->begin(run_, *directory_, first - 1);
    if (validation_ && observer->needs_origin()) validation_->read_first_origin();
  }
  const ExitCode code = run_from(first);
  for (RunObserver* observer : options_.observers) observer->end();
  return code;
}

ExitCode Trainer::run_from(std::int64_t first) {
  try {
    if (from_elsewhere_) {
      save(std::nullopt);
      checkpointer_->finish();
    }
    const auto some_are_left = [&] { return first <= steps_ && !out_of_patience(); };
    const bool opened = some_are_left();
    if (opened) open_steps(first);
    if (make_up_for_validation()) return ExitCode::kStopped;
    if (some_are_left()) {
      if (!opened) open_steps(first);
      const ExitCode code = train(first);
      trace_.finish(run_.placed().rank(), machine_, log_);
      return code;
    }
  } catch (const AgreedError&) {
    checkpointer_->finish();  // what was begun before still stands
    throw;
  }
  trace_.tell_no_steps(log_);
  if (!last_validation_) {
    log_.info(concat("nothing is left to do: its checkpoint is of step ", first - 1, ", ",
                     first <= steps_
                         ? patience_text(config_, not_improved_)
                         : (config_.train.steps ? concat("train.steps is ", steps_)
                                                : concat("train.epochs take ", counted(steps_, "step")))));
    // A start before may have been killed between its last checkpoint and its summary.
    if (!summary_stands(first - 1)) finish(first - 1);
  }
  return ExitCode::kDone;
}

/// Says what is about to happen, and lets what would end the run later end it now.
void Trainer::open_steps(std::int64_t first) {
  tell_opening(log_, run_, world_.size());
  Batch batch;
  together(world_, [&] {
    batch = batches_.read((first - 1) * config_.train.accumulate, run_.placed().rank().context.host());
  });
  tell_missing(log_, batch, run_);
  // A save holds a step up for a copy, of parameters and state at a gigabyte a second, say.
  time_left_.expect_save(1e-9 *
                         static_cast<double>(optimizer_->parameter_bytes() + optimizer_->optimizer_bytes()));
  if (!validation_) return;
  const double before = now();
  validation_->rehearse();
  const auto rehearsed = static_cast<double>(std::min<std::int64_t>(2, validation_->batches()));
  time_left_.expect_validation((now() - before) * static_cast<double>(validation_->batches()) / rehearsed);
}

ExitCode Trainer::train(std::int64_t first) {
  const std::int64_t parts = config_.train.accumulate;
  trace_.begin(first);
  saved_ = now();
  if (const auto* images = dynamic_cast<const ImageData*>(&run_.data());
      images != nullptr && images->options().classes > 0) {
    labels_ = std::make_unique<LabelScan>(*images, world_);
  }
  prefetch_ = std::make_unique<Prefetch>(
      [this](std::int64_t number) { return batches_.read(number, run_.placed().rank().context.host()); },
      (first - 1) * parts, steps_ * parts, batches_.ahead());
  std::int64_t step = first;
  for (;; ++step) {
    const double before = now();
    if (run_step(step)) return ExitCode::kStopped;
    count_time(now() - before);
    if (step == steps_ || out_of_patience()) break;
    if (const auto expected = time_left_.expectation(step)) log_.info(*expected);
  }
  poll_labels(true);
  finish(step);
  return ExitCode::kDone;
}

/// @param seconds  of the step with what came behind it.
void Trainer::count_time(double seconds) {
  seconds -= std::exchange(apart_seconds_, 0.0);
  longest_step_ = std::max(longest_step_, seconds);
  time_left_.step(seconds);
}

bool Trainer::stop_early(std::int64_t step) {
  progress_->end_line();
  log_.info(concat("stopped early at step ", step, " (", stop_cause_,
                   ") with a checkpoint; start again with --resume auto, the default, to go on"));
  return true;
}

void Trainer::tell_kernels() {
  for (const std::string& remark : take_remarks(world_.context())) log_.warn(remark);
  if (const std::string remark = step_.take_remark(); !remark.empty()) log_.info(remark);
}

void Trainer::poll_labels(bool last) {
  if (!labels_) return;
  if (last) {
    ProgressBar bar(log_, "labels");
    labels_->wait([&](double part) { bar.update(part); });
  }
  if (!labels_->poll()) return;
  if (const std::string remark = labels_->remark(); !remark.empty()) log_.warn(remark);
  labels_.reset();
}

/// Whether there is a summary of these steps, which says so where patience ended the run.
bool Trainer::summary_stands(std::int64_t steps) {
  bool stands = false;
  if (world_.rank() == 0) {
    std::ifstream in(directory_->summary_path());
    const Json summary = Json::parse(in, nullptr, false);
    stands = summary.is_object() && summary.value("steps", Json()) == steps &&
             (steps >= steps_ || summary.contains("ended_by"));
  }
  return world_.all_reduce(std::array{stands ? 1.0 : 0.0}, ReduceOp::kMax)[0] > 0;
}

/// What the last step and its validation gave in the start that made them.
void Trainer::take_last_lines(std::int64_t step, Json& results) const {
  const Json &train = metrics_->last("train"), &valid = metrics_->last("valid");
  results["final_loss"] = !train.is_null() && train.at("step") == step ? train.value("loss", Json()) : Json();
  if (!valid.is_null() && valid.at("step") == step) results["validation"] = valid.value("metrics", Json());
}

void Trainer::finish(std::int64_t step) {
  progress_->end_line();
  looked_ = 0;
  should_stop(0);  // whether results are where they belong
  remarks_.tell();
  tell_kernels();
  RankTotals own;
  own.coordinates = Json::object();
  const Mesh& mesh = run_.placed().mesh();
  for (int axis = 0; axis < mesh.shape().axes; ++axis)
    own.coordinates[mesh.axis_name(axis)] = mesh.coordinate(axis);
  own.parameter_bytes = optimizer_->parameter_bytes();
  own.optimizer_bytes = optimizer_->optimizer_bytes();
  own.peak_memory_bytes = peak_memory_bytes(world_.context());
  own.peak_activation_bytes = world_.context().arena().peak_bytes(Purpose::kActivations);
  own.file_bytes_read = run_.data().bytes_read();
  own.file_bytes_fetched = run_.data().bytes_fetched();
  own.traffic = world_.traffic();
  Json results = {{"name", config_.name},
                  {"steps", step},
                  {"first_step", first_step_},
                  {"final_loss", last_.loss},
                  {"seconds", now() - started_}};
  if (step < first_step_) take_last_lines(step, results);
  if (step < steps_) {
    results["ended_by"] = "validation.patience";
    log_.info(concat(
        "the training ends at step ", step, " of ", steps_, ": ", patience_text(config_, not_improved_),
        checkpointer_->has_best() ? concat("; the best is ", directory_->checkpoints_path(), "/best") : ""));
  }
  if (recorded_steps_ > 0) results["recorded_steps"] = recorded_steps_;
  if (last_validation_) results["validation"] = last_validation_->metrics(0);
  write_summary(directory_->summary_path(), results, own, world_, log_);
  // The seconds are those of this start: how long the ones before it took is written nowhere.
  log_.info(concat("done: ", counted(step, "step"),
                   first_step_ > 1 ? concat(", ", step - first_step_ + 1, " of them") : "", " in ",
                   human_seconds(now() - started_), "; results in ", directory_->path()));
}

}  // namespace jigsaw::inline train
