#include "train/trainer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "base/text.h"
#include "comm/agreement.h"
#include "kernels/pointwise.h"
#include "optim/schedule.h"
#include "train/pole_crossing.h"
#include "train/summary.h"
#include "train/training_state.h"

namespace jigsaw {

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Keys that may differ between a run and its continuation; dotted paths begin with one of them.
constexpr const char* kChangeable[] = {
    "name",       "mesh",        "zero",         "device",          "watchdog_seconds",
    "data.files", "train.steps", "train.epochs", "train.recompute", "validation",
    "checkpoint", "log_every",   "output"};

}  // namespace

PrecisionTypes types_of(Precision precision) {
  switch (precision) {
    case Precision::kFloat64:
      return {DType::kFloat64, DType::kFloat64, Backend::kReference};
    case Precision::kBfloat16:
      return {DType::kBfloat16, DType::kFloat32, Backend::kCpu};
    case Precision::kFloat32:
      break;
  }
  return {DType::kFloat32, DType::kFloat32, Backend::kCpu};
}

Trainer::Trainer(const Configuration& configuration, const RunOptions& options, Communicator& world, Log& log)
    : config_(configuration),
      options_(options),
      world_(world),
      log_(log),
      types_(types_of(configuration.train.precision)),
      resolved_(to_json(configuration)),
      started_(now()) {
  open_data();
  together(world_, [&] { build_model(); });
  together(world_, [&] { open_run_directory(); });
  together(world_, [&] { resume(); });
}

Trainer::~Trainer() = default;

void Trainer::open_data() {
  const TrainOptions& train = config_.train;
  objective_ = open_objective(config_, options_.config_folder, world_);
  data_ = &objective_->data();
  micro_samples_ = train.batch_size / train.accumulate;
  steps_ = total_steps();
  sampler_ = std::make_unique<Sampler>(data_->count(Split::kTrain), train.batch_size,
                                       Sampler::Order::kShuffled, static_cast<std::uint64_t>(config_.seed));
  reader_ = data_->open_reader();
}

std::int64_t Trainer::total_steps() const {
  if (config_.train.steps) return *config_.train.steps;
  if (!config_.train.epochs) return 1000;
  const auto windows = static_cast<double>(data_->count(Split::kTrain));
  return std::max<std::int64_t>(1, std::llround(std::ceil(*config_.train.epochs * windows /
                                                          static_cast<double>(config_.train.batch_size))));
}

namespace {

/// Numbers of the inputs that are sines and cosines of the time.
std::vector<std::int64_t> time_channels(const Channels& channels) {
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < channels.inputs.size(); ++i) {
    const Channel& input = channels.inputs[i];
    if (input.role == Role::kForcing && input.forcing >= Forcing::kSinTimeOfDay) {
      numbers.push_back(static_cast<std::int64_t>(i));
    }
  }
  return numbers;
}

}  // namespace

void Trainer::build_model() {
  const Channels& channels = data_->channels();
  const ModelDescription description{data_->grid().shape(), static_cast<std::int64_t>(channels.inputs.size()),
                                     objective_->output_channels(), time_channels(channels),
                                     pole_crossing(channels.inputs, data_->statistics())};
  model_ = jigsaw::build_model(config_.model, description);
  model_->set_recompute(config_.train.recompute == Recompute::kBlock);
  const MeshOptions mesh =
      resolved_mesh(config_.mesh, world_.size(), description.space, model_->input_units());
  mesh_ = std::make_unique<Mesh>(world_, mesh.data, mesh.domain, mesh.tensor);
  if (micro_samples_ < mesh.data) {
    throw ConfigError(
        concat("mesh.data ", mesh.data, " is more than the ", micro_samples_,
               " samples that run at a time; train.batch_size / train.accumulate must be at least as many"));
  }
  rank_ = std::make_unique<Rank>(Rank{world_.context(), *mesh_});
  forecaster_ = std::make_unique<Forecaster>(*model_, channels, data_->statistics(), config_.data.predict,
                                             config_.data.lead_hours, config_.train.rollout.max);
  plan_and_materialise(*model_, *rank_, plans_, micro_samples_, config_.zero, types_.master, types_.compute,
                       static_cast<std::uint64_t>(config_.seed));
  forecaster_->plan(*rank_, plans_, micro_samples_);
  optimizer_ = std::make_unique<AdamW>(*rank_, model_->parameters(), config_.optimizer);
  if (config_.validation.every > 0 && data_->count(Split::kValid) > 0) {
    validation_ = std::make_unique<Validation>(*rank_, plans_, *forecaster_, *objective_, micro_samples_,
                                               config_.train.rollout.max, types_.compute, types_.master);
  }
  check_best();
}

void Trainer::open_run_directory() {
  directory_ = std::make_unique<RunDirectory>(config_.output, world_, log_);
  log_.open(directory_->log_path());
  metrics_ = std::make_unique<MetricsLog>(directory_->metrics_path(), log_);
  checkpointer_ =
      std::make_unique<Checkpointer>(config_.checkpoint, directory_->checkpoints_path(), world_, log_);
  progress_ = std::make_unique<Progress>(log_);
  if (config_.watchdog_seconds > 0) {
    WatchdogOptions options;
    options.seconds = config_.watchdog_seconds;
    options.grace_seconds = std::min(options.grace_seconds, options.seconds);
    options.folder = directory_->path();
    options.rank = world_.rank();
    options.size = world_.size();
    watchdog_ = std::make_unique<Watchdog>(options, world_.log(), [this](const std::string& report) {
      if (log_.speaks()) {
        log_.error(report);
      } else {  // the rank that usually does is the one that hangs
        print_to_stderr(concat("jigsaw-train: error: [rank ", world_.rank(), "] ", report));
      }
      world_.abort(static_cast<int>(ExitCode::kInternal));
    });
  }
}

void Trainer::check_unchanged(const Json& before) const {
  if (options_.allow_change) return;
  for (const std::string& key : changed_keys(before, resolved_)) {
    const bool allowed = std::any_of(
        std::begin(kChangeable), std::end(kChangeable),
        [&](const std::string& prefix) { return key == prefix || key.starts_with(prefix + "."); });
    if (!allowed) {
      throw ConfigError(
          concat(key,
                 " differs from the run that is to be resumed; set it back, start anew with --resume "
                 "never, or pass --allow-change"));
    }
  }
}

void Trainer::check_data(const Json& before) const {
  if (options_.allow_change) return;
  const std::string key = first_difference(before, data_fingerprint(*data_));
  if (key.empty()) return;
  throw ConfigError(
      concat("data.files: the ", key,
             " of the training data differ from those of the run that is to be resumed; use its "
             "files, start anew with --resume never, or pass --allow-change"));
}

Json Trainer::manifest_extra(std::int64_t step) const {
  const std::int64_t samples = step * config_.train.batch_size;
  const std::int64_t epoch = data_->count(Split::kTrain);
  return {{"configuration", resolved_},
          {"seed", config_.seed},
          {"sampler", {{"samples", samples}, {"epoch", samples / epoch}, {"position", samples % epoch}}},
          {"schedule",
           {{"steps", steps_},
            {"learning_rate",
             learning_rate_at(config_.schedule, config_.optimizer.learning_rate, step, steps_)}}},
          {"optimizer", {{"steps", optimizer_->steps_done()}, {"ema_decay", config_.optimizer.ema_decay}}},
          {"skipped", skipped_in_row_},
          {"layouts", layouts_json(model_->parameters(), *mesh_)},
          {"statistics", Json::parse(data_->statistics().to_text())},
          {"data", data_fingerprint(*data_)}};
}

Json Trainer::mesh_json() const {
  Json mesh = {{"data", mesh_->size(Mesh::kData)},
               {"domain", Json::array()},
               {"tensor", mesh_->size(mesh_->tensor())}};
  for (int dim = 0; dim < mesh_->domain_axes(); ++dim)
    mesh["domain"].push_back(mesh_->size(mesh_->domain(dim)));
  mesh["zero"] = resolved_.at("zero");
  return mesh;
}

void Trainer::restore(const FoundCheckpoint& found) {
  const CheckpointManifest& manifest = found.stored.manifest;
  std::int64_t optimizer_steps = 0;
  Json configuration, data;
  try {
    configuration = manifest.extra.at("configuration");
    optimizer_steps = manifest.extra.at("optimizer").at("steps").get<std::int64_t>();
    skipped_in_row_ = manifest.extra.at("skipped").get<int>();
    data = manifest.extra.at("data");
  } catch (const Json::exception&) {
    throw CheckpointError(concat("the checkpoint ", found.path,
                                 " lacks what a training run writes; --init-from takes its parameters"));
  }
  check_unchanged(configuration);
  check_data(data);
  load(found);
  optimizer_->restore(optimizer_steps);
  first_step_ = manifest.step + 1;
  log_.info(concat("resumed from ", found.path, " at step ", manifest.step));
}

void Trainer::load(const FoundCheckpoint& found) {
  const bool average = config_.optimizer.ema_decay > 0;
  // An average that a changed configuration asks for begins with the parameters.
  const bool begins = average && options_.allow_change && found.stored.find_group("average") == nullptr;
  check_tensors(found, expected_tensors(model_->parameters(), types_.master, average && !begins));
  std::vector<CheckpointPiece> pieces = checkpoint_pieces(*optimizer_, AdamW::Share::kHeld);
  for (CheckpointPiece& piece : pieces) {
    const std::string_view kind = "average/";
    if (begins && piece.tensor.starts_with(kind)) piece.tensor.replace(0, kind.size(), "parameters/");
  }
  std::int64_t bytes = 0;
  together(world_, [&] { bytes = read_pieces(found, pieces, world_); });
  log_.info(concat("rank 0 verified ", human_bytes(found.verified_bytes), " of the checkpoint and loaded ",
                   human_bytes(bytes), "; it was saved on the mesh ", found.stored.manifest.mesh.dump()));
}

void Trainer::initialise() {
  const FoundCheckpoint found = open_checkpoint(options_.init_from, world_, options_.verify);
  std::string report;
  together(world_, [&] {
    report = initialise_from(found, model_->parameters(), *optimizer_, config_.init.skip, world_);
  });
  optimizer_->restart();
  log_.info(report);
}

void Trainer::resume() {
  const std::optional<FoundCheckpoint> found = checkpointer_->find(options_.resume, options_.verify);
  if (found) {
    restore(*found);
    if (!options_.init_from.empty())
      log_.info("--init-from is not used: the run goes on from its own checkpoint");
  } else if (!options_.init_from.empty()) {
    initialise();
  }
  checkpointer_->begin(found ? &*found : nullptr);
  metrics_->resume_at(first_step_ - 1);
  directory_->write_config(resolved_, options_.versions, options_.command_line);
}

int Trainer::rollout_of(std::int64_t step) const {
  const RolloutOptions& rollout = config_.train.rollout;
  const RandomStream random(static_cast<std::uint64_t>(config_.seed), RandomPurpose::kRollout, "length");
  const double draw = random.uniform({static_cast<std::uint64_t>(step), 0, 0}, 0);
  return rollout.min + static_cast<int>(draw * (rollout.max - rollout.min + 1));
}

Batch Trainer::load(std::int64_t micro_step) {
  const std::int64_t step = micro_step / config_.train.accumulate,
                     micro = micro_step % config_.train.accumulate;
  const std::vector<std::int64_t> samples = sampler_->batch(step);
  const auto first = samples.begin() + micro * micro_samples_;
  SampleRequest request;
  request.samples.assign(first, first + micro_samples_);
  request.position = {static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(micro * micro_samples_),
                      0};
  request.input = rank_->box(model_->input_layout(*mesh_, micro_samples_));
  request.target =
      rank_->box(objective_->loss().target_layout(*mesh_, model_->output_layout(*mesh_, micro_samples_)));
  request.rollout = rollout_of(step + 1);
  request.dtype = types_.master;
  return reader_->read(request, rank_->context);
}

double Trainer::run_micro_batch(std::int64_t step, std::int64_t micro, const Batch& batch) {
  RandomState random{
      static_cast<std::uint64_t>(config_.seed),
      {static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(micro * micro_samples_), 0}};
  Tape tape(*rank_, plans_, Tape::Mode::kRecord, types_.compute, random);
  tape.set_training(true);
  const auto leads = static_cast<int>(batch.targets.size());
  double weights = 0, loss = 0;
  for (int r = 0; r < leads; ++r) weights += config_.train.lead_weight(r);
  forecaster_->run(tape, batch, micro_samples_, [&](int r, const Variable& prediction) {
    const Array& target = batch.targets[static_cast<std::size_t>(r)];
    const double share =
        config_.train.lead_weight(r) / weights / static_cast<double>(config_.train.accumulate);
    loss += share * objective_->loss().backward(*rank_, prediction, target, share);
  });
  if (micro + 1 == config_.train.accumulate)
    tape.on_gradients([](ParameterBlock& block) { block.start_synchronise_gradients(); });
  tape.backward();
  return loss;
}

Trainer::StepResult Trainer::train_step(std::int64_t step) {
  StepResult result;
  optimizer_->zero_gradients();
  const double waited = prefetch_->seconds_waited();
  for (std::int64_t micro = 0; micro < config_.train.accumulate; ++micro) {
    Batch batch;
    together(world_, [&] { batch = prefetch_->next(); });
    result.loss += run_micro_batch(step, micro, batch);
  }
  result.data_wait = prefetch_->seconds_waited() - waited;
  result.norm = optimizer_->finish_gradients(1.0);
  result.rate = learning_rate_at(config_.schedule, config_.optimizer.learning_rate, step, steps_);
  result.finite = std::isfinite(result.loss) && std::isfinite(result.norm);
  const double base = config_.optimizer.learning_rate;
  if (result.finite) optimizer_->step(base > 0 ? result.rate / base : 0.0, 1.0, result.norm);
  return result;
}

/// Loss and norm are global, so that all ranks skip together.
void Trainer::count_skipped(const StepResult& result, std::int64_t step) {
  skipped_in_row_ = result.finite ? 0 : skipped_in_row_ + 1;
  if (result.finite) return;
  if (skipped_in_row_ > config_.train.max_skipped) {
    throw AgreedError(
        ExitCode::kNonFinite, 0,
        concat("loss or gradient was not finite in ", skipped_in_row_, " steps in a row, up to step ", step,
               "; a lower optimizer.learning_rate may help"));
  }
  log_.warn(concat("step ", step, " is skipped: loss ", result.loss, ", gradient norm ", result.norm));
}

void Trainer::log_step(std::int64_t step, const StepResult& result, double seconds, double communication) {
  const double rate = static_cast<double>(config_.train.batch_size) / seconds;
  if (step % config_.log_every == 0 || step == steps_) {
    metrics_->write({{"kind", "train"},
                     {"step", step},
                     {"loss", result.loss},
                     {"learning_rate", result.rate},
                     {"grad_norm", result.norm},
                     {"step_seconds", seconds},
                     {"data_wait_seconds", result.data_wait},
                     {"communication_seconds", communication},
                     {"samples_per_second", rate}});
  }
  progress_->update({step, steps_, result.loss, result.rate, rate}, now());
}

void Trainer::validate(std::int64_t step) {
  {
    const AdamW::Averaged averaged(*optimizer_);
    last_validation_ = validation_->run();
  }
  Json line = {{"kind", "valid"},
               {"step", step},
               {"loss", last_validation_->loss},
               {"metrics", last_validation_->metrics(0)}};
  for (std::size_t lead = 1; lead < last_validation_->leads.size(); ++lead) {
    line["leads"][std::to_string((static_cast<int>(lead) + 1) * config_.data.lead_hours)] =
        last_validation_->metrics(lead);
  }
  metrics_->write(line);
  progress_->end_line();
  for (const std::string& scores : last_validation_->lines) {
    log_.info(concat("step ", step, "  validation  ", scores));
  }
}

void Trainer::check_best() const {
  const std::string& best = config_.checkpoint.best;
  if (best.empty()) return;
  if (!validation_) {
    throw ConfigError("checkpoint.best needs validations: set validation.every and data.valid");
  }
  std::vector<std::string> known = {"loss"};
  for (const std::string& measure : objective_->make_scores()->measures()) {
    for (const Channel& target : data_->channels().targets) known.push_back(target.name + "." + measure);
  }
  if (std::find(known.begin(), known.end(), best) == known.end()) {
    throw ConfigError(concat("checkpoint.best: validation gives no \"", best, "\"", did_you_mean(best, known),
                             "; it gives for example ", known[1]));
  }
}

/// What `checkpoint.best` looks at, after a validation.
std::optional<CheckpointScore> Trainer::score() const {
  const std::string& best = config_.checkpoint.best;
  if (best.empty()) return std::nullopt;
  double value = last_validation_->loss;
  if (const std::size_t dot = best.rfind('.'); dot != std::string::npos) {
    value = last_validation_->metrics(0).at(best.substr(0, dot)).at(best.substr(dot + 1)).get<double>();
  }
  if (!std::isfinite(value)) return std::nullopt;
  return CheckpointScore{best, value};
}

void Trainer::save(std::int64_t step, const std::optional<CheckpointScore>& score) {
  checkpointer_->save({step, mesh_json(), manifest_extra(step), score},
                      checkpoint_pieces(*optimizer_, AdamW::Share::kSaved));
}

/// All ranks stop at the same step: when asked to, or when one more would not end with a checkpoint in time.
bool Trainer::should_stop() {
  const double ahead = longest_step_ + checkpointer_->longest_seconds();
  const bool late = options_.max_minutes > 0 && now() - started_ + ahead > 60 * options_.max_minutes;
  const bool asked = options_.stop != nullptr && options_.stop->load();
  return world_.all_reduce(std::array{late || asked ? 1.0 : 0.0}, ReduceOp::kMax)[0] > 0;
}

ExitCode Trainer::run() {
  if (first_step_ > steps_) {
    log_.info(concat("nothing is left to do: its checkpoint is of step ", first_step_ - 1,
                     ", train.steps is ", steps_));
    return ExitCode::kDone;
  }
  const std::int64_t parts = config_.train.accumulate;
  prefetch_ = std::make_unique<Prefetch>([this](std::int64_t micro_step) { return load(micro_step); },
                                         (first_step_ - 1) * parts, steps_ * parts);
  try {
    for (std::int64_t step = first_step_; step <= steps_; ++step) {
      const double before = now();
      if (run_step(step)) return ExitCode::kStopped;
      longest_step_ = std::max(longest_step_, now() - before);
    }
  } catch (const AgreedError&) {
    checkpointer_->finish();  // what was begun before still stands
    throw;
  }
  finish(steps_);
  return ExitCode::kDone;
}

/// Whether the run stops after it.
bool Trainer::run_step(std::int64_t step) {
  const double before = now(), communicated = world_.traffic().seconds;
  if (watchdog_) watchdog_->beat(step);
  checkpointer_->poll();
  const StepResult result = train_step(step);
  log_step(step, result, now() - before, world_.traffic().seconds - communicated);
  last_loss_ = result.loss;
  count_skipped(result, step);
  const bool last = step == steps_, stop = should_stop();
  std::optional<CheckpointScore> score;
  const bool validates = validation_ && (last || step % config_.validation.every == 0);
  if (validates && !(stop && !last)) {
    validate(step);
    score = this->score();
  }
  // Nothing was learned in a step that was skipped, and what came before it may be the cause.
  const bool due = (last || result.finite) && checkpointer_->is_due(step, last, score);
  if (stop || due) save(step, score);
  if (stop || last) checkpointer_->finish_last();
  if (!stop || last) return false;
  // Whoever asked may not wait: what is saved comes first.
  if (validates) validate(step);
  progress_->end_line();
  log_.info(concat("stopped early at step ", step,
                   " with a checkpoint; start again with --resume auto, the default, to go on"));
  return true;
}

void Trainer::finish(std::int64_t step) {
  progress_->end_line();
  RankTotals own;
  own.coordinates = Json::object();
  for (int axis = 0; axis < mesh_->shape().axes; ++axis)
    own.coordinates[mesh_->axis_name(axis)] = mesh_->coordinate(axis);
  own.parameter_bytes = optimizer_->parameter_bytes();
  own.optimizer_bytes = optimizer_->optimizer_bytes();
  own.peak_memory_bytes = peak_resident_bytes();
  own.peak_activation_bytes = rank_->context.arena().peak_bytes(Purpose::kActivations);
  own.file_bytes_read = data_->bytes_read();
  own.traffic = world_.traffic();
  Json results = {
      {"name", config_.name}, {"steps", step}, {"final_loss", last_loss_}, {"seconds", now() - started_}};
  if (last_validation_) results["validation"] = last_validation_->metrics(0);
  write_summary(directory_->summary_path(), results, own, world_, log_);
  log_.info(concat("done: ", step, " steps in ", human_seconds(now() - started_), "; results in ",
                   directory_->path()));
}

}  // namespace jigsaw
