#include "evaluate/climate_scores.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "array/parallel.h"
#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline evaluate {

namespace {

/// Elements that are summed up on the host at a time.
constexpr std::int64_t kSlab = std::int64_t{1} << 20;

}  // namespace

ClimateGroups parse_climate_groups(const std::string& text) {
  if (text.empty()) return ClimateGroups::kNone;
  if (text == "all") return ClimateGroups::kAll;
  if (text == "season") return ClimateGroups::kSeason;
  if (text == "month") return ClimateGroups::kMonth;
  throw ConfigError(concat("command line: --climate must be all, season or month, not ", text));
}

std::vector<std::string> names_of(ClimateGroups groups) {
  if (groups == ClimateGroups::kNone) return {};
  std::vector<std::string> names = {"all"};
  if (groups == ClimateGroups::kSeason) names.insert(names.end(), {"DJF", "MAM", "JJA", "SON"});
  for (int month = 1; groups == ClimateGroups::kMonth && month <= 12; ++month)
    names.push_back(std::to_string(month));
  return names;
}

std::vector<std::size_t> groups_at(ClimateGroups groups, Time time, Calendar calendar) {
  const auto month = static_cast<std::size_t>(date_from_days(floor_div(time, kDay), calendar).month);
  switch (groups) {
    case ClimateGroups::kNone:
      return {};
    case ClimateGroups::kAll:
      return {0};
    case ClimateGroups::kSeason:
      return {0, 1 + month % 12 / 3};  // from December on
    case ClimateGroups::kMonth:
      return {0, month};
  }
  fail("unknown groups");
}

ClimateScores::ClimateScores(Context& context, ClimateOptions options, Calendar calendar, const Box& piece,
                             std::size_t channels, std::vector<std::vector<double>> weights)
    : options_(options),
      calendar_(calendar),
      channels_(channels),
      weights_(std::move(weights)),
      moments_(context, names_of(options.groups).size(), piece),
      sums_(names_of(options.groups).size() * weights_.size() * channels) {}

void ClimateScores::add(const Rank& rank, int lead, const Layout& layout, const Array& members,
                        const Array& truth, std::span<const Time> times) {
  moments_.begin(layout);
  const Box box = rank.box(layout);
  if (lead < options_.spin_up || box.empty()) return;
  for (std::int64_t b = 0; b < box.extent[0]; ++b) {
    const Time time = times[static_cast<std::size_t>(box.begin[0] + b)];
    for (const std::size_t group : groups_at(options_.groups, time, calendar_))
      moments_.add(rank, group, layout, members, truth, b);
  }
}

/// Moments of one point and channel in a group in which something counts.
struct ClimateScores::Point {
  double forecast, truth, forecast_variance, truth_variance;
};

/// Calls use(group, point, channel, Point) on one rank for each of them, the channels on several threads.
template <typename F>
void ClimateScores::for_each_point(const Rank& rank, const F& use) const {
  const Box box = rank.box(moments_.map_layout(1));  // ranks that held other samples have the same
  if (box.empty()) return;
  const Shape& piece = moments_.piece();
  const std::int64_t points = piece[0] * piece[1], width = piece[2],
                     slab = std::max<std::int64_t>(1, kSlab / width);
  const auto use_slab = [&](std::size_t group, std::int64_t first, std::int64_t last) {
    const TimeMoments here = moments_.on_host(rank.context, group, first, last - first);
    const HostMoments of(here);
    for_ranges(threads_for(rank.context.host(), width, last - first), width, 1,
               [&](std::int64_t begin, std::int64_t end, int) {
                 for (std::int64_t point = first; point < last; ++point) {
                   for (std::int64_t c = begin; c < end; ++c) {
                     const auto i = static_cast<std::size_t>((point - first) * width + c);
                     if (!(of.count[i] > 0)) continue;
                     use(group, static_cast<std::size_t>(point), static_cast<std::size_t>(box.begin[3] + c),
                         Point{of.forecast[i], of.truth[i], of.forecast_variance(i), of.truth_variance(i)});
                   }
                 }
               });
  };
  for (std::size_t group = 0; group < groups().size(); ++group) {
    for (std::int64_t first = 0; first < points; first += slab)
      use_slab(group, first, std::min(first + slab, points));
  }
}

/// Sums of these kinds over all ranks.
void ClimateScores::sum(const Rank& rank, const std::vector<double Sums::*>& kinds) {
  std::vector<double> numbers;
  for (const Sums& sums : sums_) {
    for (const auto kind : kinds) numbers.push_back(sums.*kind);
  }
  sum_over(rank, rank.mesh.all_axes(), numbers);
  const double* from = numbers.data();
  for (Sums& sums : sums_) {
    for (const auto kind : kinds) sums.*kind = *from++;
  }
}

void ClimateScores::finish(const Rank& rank) {
  if (!moments_.any()) return;
  moments_.combine(rank);
  const auto in_regions = [&](std::size_t group, std::size_t point, std::size_t channel, const auto& add) {
    for (std::size_t region = 0; region < weights_.size(); ++region) {
      const double weight = weights_[region][point];
      if (weight != 0) add(weight, sums_[index(group, region, channel)]);
    }
  };
  for_each_point(rank, [&](std::size_t group, std::size_t point, std::size_t channel, const Point& of) {
    in_regions(group, point, channel, [&](double weight, Sums& to) {
      const double error = of.forecast - of.truth,
                   apart = std::sqrt(of.forecast_variance) - std::sqrt(of.truth_variance);
      to.weight += weight;
      to.difference += weight * error;
      to.squares += weight * error * error;
      to.forecast += weight * of.forecast;
      to.truth += weight * of.truth;
      to.forecast_variance += weight * of.forecast_variance;
      to.truth_variance += weight * of.truth_variance;
      to.deviations += weight * apart * apart;
    });
  });
  sum(rank, {&Sums::weight, &Sums::difference, &Sums::squares, &Sums::forecast, &Sums::truth,
             &Sums::forecast_variance, &Sums::truth_variance, &Sums::deviations});
  for_each_point(rank, [&](std::size_t group, std::size_t point, std::size_t channel, const Point& of) {
    in_regions(group, point, channel, [&](double weight, Sums& to) {
      const double f = of.forecast - to.forecast / to.weight, o = of.truth - to.truth / to.weight;
      to.forecast_pattern += weight * f * f;
      to.truth_pattern += weight * o * o;
      to.product += weight * f * o;
    });
  });
  sum(rank, {&Sums::forecast_pattern, &Sums::truth_pattern, &Sums::product});
}

ClimateScore ClimateScores::score(std::size_t channel, std::size_t region, std::size_t group) const {
  const Sums& of = sums_[index(group, region, channel)];
  ClimateScore score;
  score.bias = of.difference / of.weight;
  score.rmse = std::sqrt(of.squares / of.weight);
  score.pattern_correlation = of.product / std::sqrt(of.forecast_pattern * of.truth_pattern);
  score.std_ratio = std::sqrt(of.forecast_variance / of.truth_variance);
  score.std_rmse = std::sqrt(of.deviations / of.weight);
  score.forecast_mean = of.forecast / of.weight;
  score.truth_mean = of.truth / of.weight;
  return score;
}

std::vector<float> ClimateScores::maps(const TimeMoments& moments, const Box& box, std::int64_t channel) {
  const auto value = [](std::int64_t map, const HostMoments& of, std::size_t i) {
    switch (static_cast<ClimateMap>(map)) {
      case ClimateMap::kMean:
        return of.forecast[i];
      case ClimateMap::kTruthMean:
        return of.truth[i];
      case ClimateMap::kBias:
        return of.forecast[i] - of.truth[i];
      case ClimateMap::kDeviation:
        return std::sqrt(of.forecast_variance(i));
      case ClimateMap::kTruthDeviation:
        return std::sqrt(of.truth_variance(i));
      case ClimateMap::kCount:
        break;
    }
    return of.count[i];
  };
  return maps_of_moments(moments, box, channel, static_cast<std::int64_t>(ClimateMap::kCount), value);
}

}  // namespace jigsaw::inline evaluate
