#include "sweep/successive_halving.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "sweep/run_status.h"

namespace jigsaw::inline sweep {

std::vector<HalvingRound> halving_rounds(const HalvingOptions& options, std::int64_t runs,
                                         std::int64_t last_steps) {
  std::vector<HalvingRound> rounds;
  double steps = static_cast<double>(options.first_steps), left = static_cast<double>(runs);
  while (true) {
    const auto now = static_cast<std::int64_t>(std::llround(steps));
    const auto taking_part = std::max<std::int64_t>(1, static_cast<std::int64_t>(left));
    rounds.push_back({taking_part, std::min(now, last_steps)});
    if (now >= last_steps) return rounds;
    steps *= options.factor;
    left /= options.factor;
    if (taking_part == 1) steps = static_cast<double>(last_steps);  // the only one left goes to the end
  }
}

std::optional<HalvingTask> halving_task(const std::vector<HalvingRound>& rounds, std::int64_t index) {
  for (std::size_t round = 0; round < rounds.size(); ++round) {
    if (index < rounds[round].runs) return HalvingTask{round, static_cast<std::size_t>(index)};
    index -= rounds[round].runs;
  }
  return std::nullopt;
}

RoundEnd round_end(const std::filesystem::path& folder, const std::string& metric,
                   const HalvingRound& round) {
  RoundEnd end;
  end.score = metric_at_step(folder, metric, round.steps);
  end.there = end.score.has_value();
  if (!end.there) {
    const RunStatus status = run_status(folder, metric);
    // One that validation.patience has ended is judged by its last.
    const bool ended =
        status.state == RunState::kFinished && status.step < round.steps && ended_itself(folder);
    if (ended) end.score = status.metric;
    end.there = ended || status.state == RunState::kFailed;
  }
  if (end.score && !std::isfinite(*end.score)) end.score.reset();
  return end;
}

std::vector<SweepRun> halving_participants(const SearchSpace& space, const RunList& list,
                                           const std::vector<HalvingRound>& rounds, std::size_t round) {
  std::vector<SweepRun> taking_part(list.runs().begin(),
                                    list.runs().begin() + static_cast<std::ptrdiff_t>(rounds[0].runs));
  for (std::size_t r = 0; r < round; ++r) {
    std::vector<std::pair<std::optional<double>, SweepRun>> judged;
    for (const SweepRun& run : taking_part) {
      const auto [there, score] = round_end(list.folder_of(run), space.metric, rounds[r]);
      if (!there) {
        throw NotYet(concat("round ", r + 2, " of the sweep waits for run ", run.name,
                            ", whose validation after step ", rounds[r].steps, " is not there yet (or lacks ",
                            quote(space.metric), ")"));
      }
      // A score that is not finite comes last, as a run that failed does.
      judged.emplace_back(score, run);
    }
    std::stable_sort(judged.begin(), judged.end(), [&](const auto& a, const auto& b) {
      if (a.first.has_value() != b.first.has_value()) return a.first.has_value();
      return a.first && space.better(*a.first, *b.first);
    });
    judged.resize(static_cast<std::size_t>(rounds[r + 1].runs));
    taking_part.clear();
    for (auto& [metric, run] : judged) taking_part.push_back(std::move(run));
  }
  return taking_part;
}

}  // namespace jigsaw::inline sweep
