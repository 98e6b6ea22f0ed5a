#include "train/checkpointer.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "array/current_work.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "task/metric.h"

namespace jigsaw::inline train {
namespace {

constexpr int kMostFailures = 3;

Retention retention_of(const CheckpointOptions& options) {
  return {options.keep, options.keep_every, options.best, best_of(options.best, options.best_is)};
}

}  // namespace

std::optional<FoundCheckpoint> checkpoint_to_resume(const std::string& folder, const std::string& resume,
                                                    Verify verify, Communicator& world, Log& log) {
  if (resume == "never") return std::nullopt;
  if (resume != "auto") return open_checkpoint(resume, world, verify);
  std::vector<std::string> warnings;
  std::optional<FoundCheckpoint> found = newest_checkpoint(folder, world, warnings, verify);
  for (const std::string& warning : warnings) log.warn(warning);
  if (!found && !warnings.empty()) {
    throw CheckpointError(concat("no checkpoint in ", folder,
                                 " is whole; --resume never starts anew, and moves aside what is there"));
  }
  return found;
}

Checkpointer::Checkpointer(const CheckpointOptions& options, std::string folder, Communicator& world,
                           Log& log)
    : options_(options),
      retention_(retention_of(options)),
      folder_(folder),
      world_(world),
      log_(log),
      writer_(std::move(folder), retention_, world) {
  together(world_, [&] {
    if (world_.rank() != 0) return;
    as_checkpoint_error([&] {
      folder_.clean();
      if (options_.every > 0) folder_.probe();
    });
  });
}

bool Checkpointer::begin(const FoundCheckpoint* from) {
  if (from != nullptr) current_work(world_.context()).checkpoint = from->path;
  std::string aside;
  bool ours = false;
  together(world_, [&] {
    if (world_.rank() != 0) return;
    std::error_code ignored;
    ours = from != nullptr && std::filesystem::equivalent(std::filesystem::absolute(from->path).parent_path(),
                                                          folder_.path(), ignored);
    as_checkpoint_error([&] { aside = folder_.set_aside_after(ours ? from->stored.serial : 0); });
  });
  goes_on_ = ours;
  moved_aside_ = !aside.empty();
  if (!aside.empty()) log_.info(concat("checkpoints that this run does not go on from are now in ", aside));
  find_best();
  const bool first = world_.rank() == 0, elsewhere = first && from != nullptr && !ours;
  const auto known = world_.all_reduce(std::array{elsewhere ? 1.0 : 0.0, ours ? 1.0 : 0.0}, ReduceOp::kMax);
  one_stands_ = known[1] > 0;
  return options_.every > 0 && known[0] > 0;
}

void Checkpointer::find_best() {
  std::string text;
  together(world_, [&] {
    if (world_.rank() != 0) return;
    std::vector<CheckpointFolder::Entry> whole;
    if (!options_.best.empty()) whole = folder_.survey().whole;
    try {
      folder_.name_best(whole, retention_);
    } catch (const FileError& error) {
      log_.warn(error.what());
    }
    Json scores = Json::array();
    for (const auto& entry : whole) {
      if (entry.score && entry.score->metric == options_.best) scores.push_back(entry.score->value);
    }
    text = scores.dump();
  });
  for (const Json& score : Json::parse(world_.broadcast_text(text))) {
    if (!best_ || better(score.get<double>(), *best_, retention_.best_is)) best_ = score.get<double>();
  }
}

bool Checkpointer::improves(double score) const {
  return (!best_ || better(score, *best_, retention_.best_is)) &&
         (!saving_ || better(score, *saving_, retention_.best_is));
}

void Checkpointer::save(CheckpointManifest manifest, const std::vector<CheckpointPiece>& pieces) {
  finish();
  if (manifest.score && improves(manifest.score->value)) saving_ = manifest.score->value;
  tell(writer_.start(manifest, pieces));
}

void Checkpointer::finish_last() {
  finish();
  if (failures_in_row_ == 0) return;
  throw AgreedError(ExitCode::kCheckpoint, 0,
                    concat("the last checkpoint cannot be saved: ", failure_, "; ", what_is_kept()));
}

void Checkpointer::tell(const std::optional<SaveOutcome>& outcome) {
  if (!outcome) return;
  const std::optional<double> score = std::exchange(saving_, std::nullopt);
  if (outcome->saved() && score) best_ = score;
  if (!outcome->saved()) return tell_failure(*outcome);
  one_stands_ = true;
  current_work(world_.context()).checkpoint = outcome->path;
  failures_in_row_ = 0;
  longest_seconds_ = std::max(longest_seconds_, outcome->seconds);
  if (!outcome->failure.empty())
    log_.warn(concat("the checkpoint ", outcome->path, " was saved, but then: ", outcome->failure));
}

std::string Checkpointer::what_is_kept() const {
  return one_stands_ ? "earlier checkpoints are kept" : "there is no earlier one";
}

void Checkpointer::tell_failure(const SaveOutcome& outcome) {
  failure_ = outcome.failure;
  if (++failures_in_row_ >= kMostFailures) {
    throw AgreedError(ExitCode::kCheckpoint, 0,
                      concat(failures_in_row_, " checkpoints in a row could not be saved, the last of step ",
                             outcome.step, ": ", outcome.failure, "; ", what_is_kept()));
  }
  log_.warn(concat("the checkpoint of step ", outcome.step, " cannot be saved: ", outcome.failure, "; ",
                   what_is_kept()));
}

}  // namespace jigsaw::inline train
