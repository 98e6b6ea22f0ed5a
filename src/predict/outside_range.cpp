#include "predict/outside_range.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <tuple>

#include "array/transfer.h"
#include "base/text.h"
#include "kernels/forecast_scores.h"
#include "predict/least_of_ranks.h"

namespace jigsaw::inline predict {

namespace {

auto order_of_outside(const OutsideRange::Found& found) {
  return std::tuple(found.step, found.start);
}

}  // namespace

bool OutsideRange::add(const Rank& rank, const Layout& layout, const Array& states, int step,
                       std::span<const Time> starts) {
  const Box box = rank.box(layout);
  if (box.empty()) return false;
  const int last = box.extent.rank() - 1;
  const std::int64_t samples = box.extent[0], channels = box.extent[last];
  std::vector<double> thresholds;
  for (const double StateLimits::*end : {&StateLimits::low, &StateLimits::high}) {
    for (std::int64_t c = box.begin[last]; c < box.end(last); ++c)
      thresholds.push_back(limits_[static_cast<std::size_t>(c)].*end);
  }
  // A state is compared with itself: kinds are (threshold · 2 + missed) · 2 + reached.
  const double one = 1;
  const Array weights =
      kept_constant(rank.context, {1, box.extent.count(1, last)}, DType::kFloat64, std::span(&one, 1));
  const std::vector<double> sums =
      download_values(rank.context, exceedance_sums(rank.context, states, states, 1, thresholds, weights));
  constexpr std::int64_t kBelowLow = 2, kAtHigh = 5;
  bool any = false;
  for (const auto& [kind, above] : {std::pair{kBelowLow, false}, std::pair{kAtHigh, true}}) {
    for (std::int64_t sample = 0; sample < samples; ++sample) {
      for (std::int64_t c = 0; c < channels; ++c) {
        if (!(sums[static_cast<std::size_t>((kind * samples + sample) * channels + c)] > 0)) continue;
        any = true;
        const Found here{box.begin[last] + c, step, starts[static_cast<std::size_t>(box.begin[0] + sample)],
                         above};
        const auto [known, is_new] = found_.emplace(here.channel, here);
        if (!is_new && order_of_outside(here) < order_of_outside(known->second)) known->second = here;
      }
    }
  }
  return any;
}

std::vector<OutsideRange::Found> OutsideRange::find(Communicator& world) const {
  std::vector<std::optional<FindOrder>> own(limits_.size());
  for (const auto& [channel, found] : found_) {
    own[static_cast<std::size_t>(channel)] = {static_cast<double>(found.step),
                                              static_cast<double>(found.start), found.above ? 1.0 : 0.0};
  }
  const std::vector<std::optional<FindOrder>> least = least_of_ranks(world, own);
  std::vector<Found> all;
  for (std::size_t c = 0; c < least.size(); ++c) {
    if (!least[c]) continue;
    const auto [step, start, above] = *least[c];
    all.push_back(
        {static_cast<std::int64_t>(c), static_cast<int>(step), static_cast<Time>(start), above > 0});
  }
  return all;
}

std::vector<std::string> OutsideRange::remarks_of(
    const SampleSource& data, Communicator& world,
    const std::function<std::string(const Found&)>& where) const {
  std::vector<Found> all = find(world);
  std::ranges::stable_sort(all, {}, order_of_outside);
  std::set<std::string> told;
  std::vector<std::string> sentences;
  for (const Found& found : all) {
    const Channel& target = data.channels().targets[static_cast<std::size_t>(found.channel)];
    if (!told.insert(target.field.variable).second) continue;
    const FieldStatistics& field = data.statistics().of(target.field);
    sentences.push_back(concat(
        "forecasts of ", target.name, " leave what the model was trained on by far, first at ", where(found),
        ": ", text_beyond(target, field, limits_[static_cast<std::size_t>(found.channel)], found.above)));
  }
  return sentences;
}

std::vector<std::string> OutsideRange::remarks(const Dataset& data, Communicator& world) const {
  const FileSet& files = data.files();
  return remarks_of(data, world, [&](const Found& found) {
    const Time time = found.start + found.step * data.options().lead_time;
    return concat("step ", found.step, " (", files.text_of(time), ") of that from ",
                  files.text_of(found.start));
  });
}

std::vector<std::string> OutsideRange::remarks(const SequenceData& data, Communicator& world) const {
  return remarks_of(data, world, [&](const Found& found) {
    return concat("step ", found.step, " of that from ", data.text_of(found.start));
  });
}

}  // namespace jigsaw::inline predict
