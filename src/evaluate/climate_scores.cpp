#include "evaluate/climate_scores.h"

#include <algorithm>
#include <cmath>

#include "array/host_view.h"
#include "array/parallel.h"
#include "array/transfer.h"
#include "base/error.h"
#include "base/text.h"
#include "kernels/pointwise.h"

namespace jigsaw::inline evaluate {

namespace {

/// Elements that are combined, or summed up on the host, at a time.
constexpr std::int64_t kSlab = std::int64_t{1} << 20;

/// The same part of all of them.
TimeMoments part_of_moments(TimeMoments moments, std::int64_t first, const Shape& shape) {
  for_each_array(moments, [&](Array& array) { array = array.slice(first, shape); });
  return moments;
}

TimeMoments moments_on_host(const Context& context, TimeMoments moments) {
  for_each_array(moments, [&](Array& array) { array = download(context, array); });
  return moments;
}

/// Moments that stand on the host.
struct HostMoments {
  explicit HostMoments(const TimeMoments& of)
      : count(of.count),
        forecast(of.forecast_mean),
        forecast_squares(of.forecast_squares),
        truth(of.truth_mean),
        truth_squares(of.truth_squares) {}
  double forecast_variance(std::size_t i) const { return forecast_squares[i] / count[i]; }
  double truth_variance(std::size_t i) const { return truth_squares[i] / count[i]; }

  HostView<const double> count, forecast, forecast_squares, truth, truth_squares;
};

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
      piece_{piece.extent[1], piece.extent[2], piece.extent[3]},
      channels_(channels),
      weights_(std::move(weights)),
      sums_(names_of(options.groups).size() * weights_.size() * channels) {
  const Shape all{std::ssize(names_of(options.groups)), piece_[0], piece_[1], piece_[2]};
  for_each_array(moments_, [&](Array& array) {
    array = filled(context, all, DType::kFloat64, 0.0, Purpose::kWorkspace);
  });
}

void ClimateScores::add(const Rank& rank, int lead, const Layout& layout, const Array& members,
                        const Array& truth, std::span<const Time> times) {
  layout_ = layout;
  const Box box = rank.box(layout);
  if (lead < options_.spin_up || box.empty()) return;
  const Shape one{1, piece_[0], piece_[1], piece_[2]};
  const std::int64_t size = one.count(), each = members.shape()[0] / box.extent[0];
  require(Shape({1, box.extent[1], box.extent[2], box.extent[3]}) == one, "a rank's points change");
  for (std::int64_t b = 0; b < box.extent[0]; ++b) {
    const Time time = times[static_cast<std::size_t>(box.begin[0] + b)];
    for (const std::size_t group : groups_at(options_.groups, time, calendar_)) {
      TimeMoments of_group = part_of_moments(moments_, static_cast<std::int64_t>(group) * size, one);
      add_moments(rank.context, members.slice(b * each * size, {each, piece_[0], piece_[1], piece_[2]}),
                  truth.slice(b * size, one), of_group);
    }
  }
}

/// Joins the moments of ranks that hold other samples, as Chan, Golub and LeVeque (1983) do, of all ranks at
/// once: n = Σ n_r, mean = Σ n_r mean_r/n, squares = Σ (squares_r + n_r (mean_r − mean)²).
void ClimateScores::combine(const Rank& rank) {
  const AxisSet others = SampleGroup(rank.mesh, layout_, rank.box(layout_)).other_samples;
  if (rank.mesh.communicator(others).size() == 1) return;
  const std::int64_t all = moments_.count.count();
  for (std::int64_t first = 0; first < all; first += kSlab) {
    TimeMoments slab = part_of_moments(moments_, first, {std::min(kSlab, all - first)});
    std::vector<std::vector<double>> own;  // as for_each_array() gives them
    for_each_array(slab, [&](const Array& array) { own.push_back(download_values(rank.context, array)); });
    const auto n = own[0].size();
    const auto weighted = [](double count, double value) { return count > 0 ? count * value : 0.0; };
    std::vector<double> means = own[0];
    for (const std::size_t mean : {1, 3}) {
      for (std::size_t i = 0; i < n; ++i) means.push_back(weighted(own[0][i], own[mean][i]));
    }
    sum_over(rank, others, means);
    for (std::size_t i = 0; i < 2 * n; ++i) {
      const double count = means[i % n];
      means[n + i] = count > 0 ? means[n + i] / count : 0.0;
    }
    std::vector<double> squares;
    for (const std::size_t mean : {1, 3}) {
      for (std::size_t i = 0; i < n; ++i) {
        const double apart = own[mean][i] - means[(mean + 1) / 2 * n + i];
        squares.push_back(own[mean + 1][i] + weighted(own[0][i], apart * apart));
      }
    }
    sum_over(rank, others, squares);
    const auto part = [n](const std::vector<double>& from, std::size_t which) {
      return std::span(from).subspan(which * n, n);
    };
    write_values(rank.context, slab.count, part(means, 0));
    write_values(rank.context, slab.forecast_mean, part(means, 1));
    write_values(rank.context, slab.truth_mean, part(means, 2));
    write_values(rank.context, slab.forecast_squares, part(squares, 0));
    write_values(rank.context, slab.truth_squares, part(squares, 1));
  }
}

/// Moments of one point and channel in a group in which something counts.
struct ClimateScores::Point {
  double forecast, truth, forecast_variance, truth_variance;
};

/// Calls use(group, point, channel, Point) on one rank for each of them, the channels on several threads.
template <typename F>
void ClimateScores::for_each_point(const Rank& rank, const F& use) const {
  Layout one = layout_;
  one.global[0] = 1;  // ranks that held other samples have the same
  const Box box = rank.box(one);
  if (box.empty()) return;
  const std::int64_t points = piece_[0] * piece_[1], width = piece_[2],
                     slab = std::max<std::int64_t>(1, kSlab / width);
  const auto use_slab = [&](std::size_t group, std::int64_t first, std::int64_t last) {
    const std::int64_t from = (static_cast<std::int64_t>(group) * points + first) * width;
    const TimeMoments here =
        moments_on_host(rank.context, part_of_moments(moments_, from, {last - first, width}));
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
  if (layout_.global.rank() == 0) return;
  combine(rank);
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

Layout ClimateScores::map_layout() const {
  Layout layout = layout_;
  layout.global[0] = kClimateMaps;
  return layout;
}

TimeMoments ClimateScores::moments(const Context& context, std::size_t group) const {
  const std::int64_t size = piece_.count();
  return moments_on_host(context, part_of_moments(moments_, static_cast<std::int64_t>(group) * size,
                                                  {piece_[0], piece_[1], piece_[2]}));
}

std::vector<float> ClimateScores::maps(const TimeMoments& moments, const Box& box, std::int64_t channel) {
  if (box.empty() || channel < box.begin[3] || channel >= box.end(3)) return {};
  const HostMoments of(moments);
  const auto value = [&](ClimateMap map, std::size_t i) {
    switch (map) {
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
  std::vector<float> values;
  for (std::int64_t map = box.begin[0]; map < box.end(0); ++map) {
    const auto which = static_cast<ClimateMap>(map);
    for (std::int64_t point = 0; point < box.extent[1] * box.extent[2]; ++point) {
      const auto i = static_cast<std::size_t>(point * box.extent[3] + channel - box.begin[3]);
      const bool there = which == ClimateMap::kCount || of.count[i] > 0;
      values.push_back(there ? static_cast<float>(value(which, i)) : std::nanf(""));
    }
  }
  return values;
}

}  // namespace jigsaw::inline evaluate
