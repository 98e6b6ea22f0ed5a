#include "train/opened_run.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "comm/agreement.h"

namespace jigsaw::inline train {

OpenedRun::OpenedRun(const Configuration& configuration, const std::filesystem::path& folder,
                     Communicator& world)
    : OpenedRun(configuration, folder, world, world) {}

OpenedRun::OpenedRun(const Configuration& configuration, const std::filesystem::path& folder,
                     Communicator& world, Communicator& model_ranks)
    : configuration_(configuration), world_(world), objective_(open_objective(configuration, folder, world)) {
  together(world_, [&] {
    check_best(configuration_, *objective_, validates());
    placed_ = std::make_unique<PlacedModel>(configuration_, *objective_, model_ranks);
  });
}

bool OpenedRun::validates() const {
  return configuration_.validation.every > 0 && data().count(Split::kValid) > 0;
}

std::int64_t OpenedRun::total_steps() const {
  const TrainOptions& train = configuration_.train;
  if (train.steps) return *train.steps;
  if (!train.epochs) return 1000;
  const auto windows = static_cast<double>(data().count(Split::kTrain));
  return std::max<std::int64_t>(
      1, std::llround(std::ceil(*train.epochs * windows / static_cast<double>(train.batch_size))));
}

void check_best(const Configuration& configuration, Objective& objective, bool validates) {
  const std::string& best = configuration.checkpoint.best;
  if (best.empty()) return;
  if (!validates) {
    throw ConfigError("checkpoint.best needs validations: set validation.every and data.valid");
  }
  std::vector<std::string> known = {"loss"};
  for (const std::string& measure : objective.make_scores()->measures()) {
    for (const Channel& target : objective.data().channels().targets)
      known.push_back(target.name + "." + measure);
  }
  if (std::find(known.begin(), known.end(), best) == known.end()) {
    throw ConfigError(concat("checkpoint.best: validation gives no \"", best, "\"", did_you_mean(best, known),
                             "; it gives for example ", known[1]));
  }
}

}  // namespace jigsaw::inline train
