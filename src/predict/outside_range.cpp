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

constexpr double kDeviations = 5;  // beyond the ends
constexpr double kUnknownEnds = 15, kSkewedEnd = 150;

std::string rounded(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

StateLimits limits_of(const Channel& channel, const FieldStatistics& field,
                      const std::optional<double>& deviations) {
  if (channel.transform.kind == TransformKind::kNone || !(field.deviation > 0)) return {};
  const double beyond = deviations.value_or(kDeviations);
  const auto ends = [&](double least, double largest, double deviation) {
    const double more = std::max(beyond * deviation, deviations ? 0.0 : (largest - least) / 2);
    return StateLimits{least - more, largest + more};
  };
  if (channel.transform.kind == TransformKind::kMinMax)  // the deviation is the whole range
    return ends(field.mean, field.mean + field.deviation, field.deviation / kDeviations);
  if (!channel.transform.linear()) {
    if (!field.least || !field.largest) return {};
    const double least = channel.transform.inverse(*field.least),
                 largest = channel.transform.inverse(*field.largest);
    return ends(least, largest, (largest - least) / kDeviations);
  }
  if (field.least && field.largest) return ends(*field.least, *field.largest, field.deviation);
  const bool skewed = field.mean > 0 && field.mean < 2 * field.deviation;
  return {field.mean - (kUnknownEnds + beyond) * field.deviation,
          field.mean + ((skewed ? kSkewedEnd : kUnknownEnds) + beyond) * field.deviation};
}

auto order_of_outside(const OutsideRange::Found& found) {
  return std::tuple(found.step, found.start);
}

}  // namespace

std::vector<StateLimits> state_limits(const Channels& channels, const Statistics& statistics,
                                      std::optional<double> deviations) {
  std::vector<StateLimits> limits;
  for (const Channel& target : channels.targets)
    limits.push_back(limits_of(target, statistics.of(target.field), deviations));
  return limits;
}

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

std::vector<std::string> OutsideRange::remarks(const Dataset& data, Communicator& world) const {
  std::vector<Found> all = find(world);
  std::ranges::stable_sort(all, {}, order_of_outside);
  const FileSet& files = data.files();
  const Time lead = data.options().lead_time;
  std::set<std::string> told;
  std::vector<std::string> sentences;
  for (const Found& found : all) {
    const Channel& target = data.channels().targets[static_cast<std::size_t>(found.channel)];
    if (!told.insert(target.field.variable).second) continue;
    const FieldStatistics& field = data.statistics().of(target.field);
    const StateLimits& limits = limits_[static_cast<std::size_t>(found.channel)];
    const std::string units = field.units.empty() ? "" : " " + field.units;
    const bool ends = field.least && field.largest;
    sentences.push_back(
        concat("forecasts of ", target.name, " leave what the model was trained on by far, first at step ",
               found.step, " (", files.text_of(found.start + found.step * lead), ") of that from ",
               files.text_of(found.start), found.above ? ": above " : ": below ",
               rounded(found.above ? limits.high : limits.low), units,
               ends ? concat(", where data.train holds ", rounded(target.transform.inverse(*field.least)),
                             " to ", rounded(target.transform.inverse(*field.largest)), units)
                    : concat(", where the training data have mean ", rounded(field.mean), " and deviation ",
                             rounded(field.deviation))));
  }
  return sentences;
}

}  // namespace jigsaw::inline predict
