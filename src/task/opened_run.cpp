#include "task/opened_run.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "base/progress_bar.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "task/memory_need.h"
#include "task/metric.h"

namespace jigsaw::inline task {

namespace {

bool validates(const Configuration& configuration, const SampleSource& data) {
  return configuration.validation.every > 0 && data.count(Split::kValid) > 0;
}

/// @param seen  of the samples.
double steps_of_epochs(const TrainOptions& train, const SampleSource& data, std::int64_t seen = 0) {
  const auto windows = static_cast<double>(data.count(Split::kTrain));
  return std::ceil((*train.epochs * windows - static_cast<double>(seen)) /
                   static_cast<double>(train.batch_size));
}

void check_epochs(const Configuration& configuration, const SampleSource& data) {
  const TrainOptions& train = configuration.train;
  if (!train.epochs || steps_of_epochs(train, data) <= static_cast<double>(kMostUpdates)) return;
  throw ConfigError(concat("train.epochs ", *train.epochs, " of ", data.count(Split::kTrain),
                           " samples are more than ", kMostUpdates, " steps with train.batch_size ",
                           train.batch_size, "; give fewer, or train.steps"));
}

DataUse use_of(const Configuration& configuration, Communicator& world, Communicator& model_ranks,
               const Opening& opening) {
  DataUse use = opening.use;
  if (opening.given != nullptr) {
    use.statistics = opening.given->statistics;
    if (!use.like) use.like = opening.given->order;
  }
  StatisticsPass& pass = use.pass;
  pass.cache = opening.cache;
  pass.before = [&configuration, &world, &model_ranks, trains = use.train,
                 checked = opening.checked](const SampleSource& data) {
    const MemoryRoom room = memory_room(model_ranks);
    together(world, [&] {
      check_best(configuration, data);
      check_epochs(configuration, data);
      check_placement(configuration, data, model_ranks, room, trains);
    });
    if (checked) checked();
  };
  if (opening.log == nullptr) return use;
  tell_statistics(pass, *opening.log);
  return use;
}

}  // namespace

void tell_statistics(StatisticsPass& pass, Log& log) {
  pass.tell = [&log](const std::string& line) { log.info(line); };
  pass.progress = [&log, bar = std::shared_ptr<ProgressBar>()](double part) mutable {
    if (!bar) bar = std::make_shared<ProgressBar>(log, "statistics of the training data");
    bar->update(part);
  };
}

std::filesystem::path cache_folder() {
  const auto folder = [](const char* variable) -> std::filesystem::path {
    const char* value = std::getenv(variable);
    return value == nullptr || *value != '/' ? "" : value;
  };
  if (const auto caches = folder("XDG_CACHE_HOME"); !caches.empty()) return caches / "jigsaw-train";
  const auto home = folder("HOME");
  return home.empty() ? home : home / ".cache/jigsaw-train";
}

OpenedRun::OpenedRun(const Configuration& configuration, const std::filesystem::path& folder,
                     Communicator& world, const Opening& opening)
    : OpenedRun(configuration, folder, world, world, opening) {}

OpenedRun::OpenedRun(const Configuration& configuration, const std::filesystem::path& folder,
                     Communicator& world, Communicator& model_ranks, const Opening& opening)
    : configuration_(configuration),
      statistics_from_(opening.given != nullptr ? opening.given->from : ""),
      world_(world),
      objective_(
          open_objective(configuration, folder, world, use_of(configuration_, world, model_ranks, opening))) {
  const CostModel costs = plan_costs(world, model_ranks.size(), configuration.train);
  together(world_,
           [&] { placed_ = std::make_unique<PlacedModel>(configuration_, *objective_, model_ranks, costs); });
}

OpenedRun::OpenedRun(const Configuration& configuration, std::unique_ptr<Objective> objective,
                     Communicator& world, const CostModel& costs, const std::vector<BlockPlan>& known)
    : configuration_(configuration), world_(world), objective_(std::move(objective)) {
  placed_ = std::make_unique<PlacedModel>(configuration_, *objective_, world_, costs, known);
}

bool OpenedRun::validates() const {
  return jigsaw::validates(configuration_, data());
}

std::int64_t OpenedRun::total_steps() const {
  const TrainOptions& train = configuration_.train;
  if (train.steps) return *train.steps;
  if (!train.epochs) return 1000;
  const std::int64_t to_come = std::llround(steps_of_epochs(train, data(), seen_.samples));
  return std::max<std::int64_t>(1, seen_.steps + std::max<std::int64_t>(0, to_come));
}

void check_best(const Configuration& configuration, const SampleSource& data) {
  const std::string& best = configuration.checkpoint.best;
  if (best.empty()) return;
  if (!validates(configuration, data)) {
    throw ConfigError("checkpoint.best needs validations: set validation.every and data.valid");
  }
  require_number("checkpoint.best", best, configuration, channel_names(data.channels().targets));
}

}  // namespace jigsaw::inline task
