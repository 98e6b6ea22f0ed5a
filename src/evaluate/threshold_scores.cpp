#include "evaluate/threshold_scores.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "array/transfer.h"
#include "parallel/redistribute.h"

namespace jigsaw::inline evaluate {

namespace {

/// The layout in which each rank has whole planes: what cut space cuts channels.
Layout with_whole_planes(const Mesh& mesh, Layout layout) {
  for (int axis = 0; axis < mesh.shape().axes; ++axis) {
    const Placement& cut = layout.placements[axis];
    if (cut.is_shard() && (cut.dim == 1 || cut.dim == 2)) layout.placements[axis] = Placement::shard(3);
  }
  return layout;
}

/// Weights of all points of the grid, [regions, points], from those of the pieces. Collective over the mesh.
std::vector<double> gathered_weights(const Rank& rank, const Layout& layout, const Array& weights) {
  Layout cut{{weights.shape()[0], layout.global[1], layout.global[2], 1}, {}};
  const Layout whole = cut;
  for (int axis = 0; axis < rank.mesh.shape().axes; ++axis) {
    const Placement& placement = layout.placements[axis];
    if (placement.is_shard() && (placement.dim == 1 || placement.dim == 2)) cut.placements[axis] = placement;
  }
  const Array piece = weights.reshaped(rank.box(cut).extent);
  return download_values(rank.context, redistribute(rank, {piece, cut}, whole).piece);
}

/// How many events lie in the squares around the points of a plane.
class Squares {
 public:
  /// @param around  whether columns go on at the other end.
  Squares(std::int64_t rows, std::int64_t columns, bool around)
      : rows_(rows), columns_(columns), around_(around), sums_((rows + 1) * (columns + 1)) {}

  /// @param event  of a point, by its number in the plane.
  template <typename F>
  void take(const F& event) {
    for (std::int64_t row = 0; row < rows_; ++row) {
      std::int64_t of_row = 0;
      for (std::int64_t column = 0; column < columns_; ++column) {
        of_row += event(row * columns_ + column) ? 1 : 0;
        at(row + 1, column + 1) = at(row, column + 1) + of_row;
      }
    }
  }
  /// Of the square of an odd number of points along its edges.
  std::int64_t around(std::int64_t row, std::int64_t column, std::int64_t scale) const {
    const std::int64_t half = scale / 2, top = std::max<std::int64_t>(row - half, 0),
                       bottom = std::min(row + half + 1, rows_);
    return before(top, bottom, column + half + 1) - before(top, bottom, column - half);
  }

 private:
  std::int64_t& at(std::int64_t row, std::int64_t column) {
    return sums_[static_cast<std::size_t>(row * (columns_ + 1) + column)];
  }
  std::int64_t between(std::int64_t top, std::int64_t bottom, std::int64_t column) const {
    return sums_[static_cast<std::size_t>(bottom * (columns_ + 1) + column)] -
           sums_[static_cast<std::size_t>(top * (columns_ + 1) + column)];
  }
  /// Of rows [top, bottom) in the columns from 0 to this one, which may lie beyond the ends.
  std::int64_t before(std::int64_t top, std::int64_t bottom, std::int64_t column) const {
    if (column >= 0 && column <= columns_) return between(top, bottom, column);
    if (!around_) return column < 0 ? 0 : between(top, bottom, columns_);
    const std::int64_t turns = (column < 0 ? column - columns_ + 1 : column) / columns_;
    return turns * between(top, bottom, columns_) + between(top, bottom, column - turns * columns_);
  }

  std::int64_t rows_, columns_;
  bool around_;
  std::vector<std::int64_t> sums_;  // [rows + 1, columns + 1]: of all points before
};

}  // namespace

std::size_t Thresholds::most() const {
  std::size_t most = 0;
  for (const std::vector<double>& of_channel : of) most = std::max(most, of_channel.size());
  return most;
}

Thresholds thresholds_of(const Dataset& data, const ValidationOptions& options) {
  Thresholds thresholds{.of = {}, .scales = options.fss_scales, .around = data.grid().periodic};
  for (const Channel& target : data.channels().targets)
    thresholds.of.push_back(of_field(options.thresholds, target.field));
  return thresholds;
}

double reached_from(double threshold) {
  return threshold - 0x1p-22 * std::abs(threshold);
}

ThresholdScores::ThresholdScores(Thresholds thresholds, int leads, std::size_t regions, std::int64_t members)
    : thresholds_(std::move(thresholds)),
      regions_(regions),
      members_(members),
      by_threshold_(thresholds_.most(), std::vector<double>(thresholds_.of.size(), std::nan(""))) {
  for (std::size_t channel = 0; channel < thresholds_.of.size(); ++channel) {
    for (std::size_t t = 0; t < thresholds_.of[channel].size(); ++t)
      by_threshold_[t][channel] = reached_from(thresholds_.of[channel][t]);
  }
  Table empty{std::vector<double>(4),
              {},
              std::vector<double>(thresholds_.scales.size()),
              std::vector<double>(thresholds_.scales.size())};
  if (members > 1) empty.members.resize(2 * static_cast<std::size_t>(members + 1));
  tables_.assign(static_cast<std::size_t>(leads) * thresholds_.of.size() * by_threshold_.size() * regions,
                 empty);
}

std::size_t ThresholdScores::index(int lead, std::size_t channel, std::size_t threshold,
                                   std::size_t region) const {
  const std::size_t row = static_cast<std::size_t>(lead) * thresholds_.of.size() + channel;
  return (row * by_threshold_.size() + threshold) * regions_ + region;
}

void ThresholdScores::add(const Rank& rank, int lead, const Layout& layout, const Array& members,
                          const Array& mean, const Array& truth, const Array& weights) {
  if (!any()) return;
  add_kinds(rank, lead, sum_exceedances(rank, layout, mean, truth, 1, by_threshold_, weights), &Table::mean);
  if (members_ > 1) {
    add_kinds(rank, lead, sum_exceedances(rank, layout, members, truth, members_, by_threshold_, weights),
              &Table::members);
  }
  if (thresholds_.scales.empty()) return;
  if (weights_.empty()) weights_ = gathered_weights(rank, layout, weights);
  add_fractions(rank, lead, layout, mean, truth);
}

/// Of every channel, threshold, region and kind over these samples, then over those of other ranks.
void ThresholdScores::add_kinds(const Rank& rank, int lead, const RegionSums& sums,
                                std::vector<double> Table::*to) {
  const auto each = [&](const auto& use) {
    for (std::size_t channel = 0; channel < thresholds_.of.size(); ++channel) {
      for (std::size_t t = 0; t < thresholds_.of[channel].size(); ++t) {
        for (std::size_t region = 0; region < regions_; ++region) {
          std::vector<double>& kinds = tables_[index(lead, channel, t, region)].*to;
          for (std::size_t k = 0; k < kinds.size(); ++k)
            use(kinds[k], static_cast<std::int64_t>(t * kinds.size() + k), region, channel);
        }
      }
    }
  };
  std::vector<double> numbers;
  each([&](const double& /*total*/, std::int64_t kind, std::size_t region, std::size_t channel) {
    double sum = 0;
    for (std::int64_t sample = 0; sample < sums.group.samples; ++sample)
      sum += sums.at(kind, sample, static_cast<std::int64_t>(region), static_cast<std::int64_t>(channel));
    numbers.push_back(sum);
  });
  sum_over(rank, sums.group.other_samples, numbers);
  const double* from = numbers.data();
  each([&](double& total, std::int64_t, std::size_t, std::size_t) { total += *from++; });
}

void ThresholdScores::add_fractions(const Rank& rank, int lead, const Layout& layout, const Array& mean,
                                    const Array& truth) {
  const Layout planes = with_whole_planes(rank.mesh, layout);
  const auto whole = [&](const Array& piece) {
    return download_values(rank.context, redistribute(rank, {piece, layout}, planes).piece);
  };
  const std::vector<double> forecasts = whole(mean), truths = whole(truth);
  const Box box = rank.box(planes);
  if (box.empty()) return;
  const auto points = static_cast<std::size_t>(box.extent[1] * box.extent[2]),
             channels = static_cast<std::size_t>(box.extent[3]);
  Plane plane{box.extent[1], box.extent[2], std::vector<double>(points), std::vector<double>(points)};
  for (std::size_t sample = 0; sample < static_cast<std::size_t>(box.extent[0]); ++sample) {
    for (std::size_t c = 0; c < channels; ++c) {
      const std::size_t channel = static_cast<std::size_t>(box.begin[3]) + c;
      if (thresholds_.of[channel].empty()) continue;
      for (std::size_t point = 0; point < points; ++point) {
        plane.forecast[point] = forecasts[(sample * points + point) * channels + c];
        plane.truth[point] = truths[(sample * points + point) * channels + c];
      }
      add_plane(lead, channel, plane);
    }
  }
}

void ThresholdScores::add_plane(int lead, std::size_t channel, const Plane& plane) {
  const std::size_t points = plane.truth.size();
  bool known = true;  // a forecast that is not a number makes all scores NaN
  for (std::size_t point = 0; point < points; ++point)
    known = known && (std::isnan(plane.truth[point]) || !std::isnan(plane.forecast[point]));
  Squares forecast(plane.rows, plane.columns, thresholds_.around),
      truth(plane.rows, plane.columns, thresholds_.around);
  for (std::size_t t = 0; t < thresholds_.of[channel].size(); ++t) {
    const double threshold = by_threshold_[t][channel];
    Table* const to = &tables_[index(lead, channel, t, 0)];
    const auto counts = [&](std::int64_t point) {
      return !std::isnan(plane.truth[static_cast<std::size_t>(point)]);
    };
    forecast.take([&](std::int64_t point) {
      return counts(point) && plane.forecast[static_cast<std::size_t>(point)] >= threshold;
    });
    truth.take([&](std::int64_t point) { return plane.truth[static_cast<std::size_t>(point)] >= threshold; });
    for (std::size_t s = 0; s < thresholds_.scales.size(); ++s) {
      const std::int64_t scale = thresholds_.scales[s];
      const double share =
          known ? 1 / (static_cast<double>(scale) * static_cast<double>(scale)) : std::nan("");
      for (std::int64_t point = 0; point < static_cast<std::int64_t>(points); ++point) {
        if (!counts(point)) continue;
        const std::int64_t row = point / plane.columns, column = point % plane.columns;
        const double p = share * static_cast<double>(forecast.around(row, column, scale)),
                     q = share * static_cast<double>(truth.around(row, column, scale));
        for (std::size_t region = 0; region < regions_; ++region) {
          const double weight = weights_[region * points + static_cast<std::size_t>(point)];
          if (weight == 0) continue;
          to[region].apart[s] += weight * (p - q) * (p - q);
          to[region].largest[s] += weight * (p * p + q * q);
        }
      }
    }
  }
}

void ThresholdScores::finish(const Rank& rank) {
  if (!any() || thresholds_.scales.empty()) return;
  std::vector<double> numbers;
  for (const Table& of : tables_) {
    numbers.insert(numbers.end(), of.apart.begin(), of.apart.end());
    numbers.insert(numbers.end(), of.largest.begin(), of.largest.end());
  }
  sum_over(rank, rank.mesh.all_axes(), numbers);
  auto from = numbers.begin();
  for (Table& to : tables_) {
    for (std::vector<double>* sums : {&to.apart, &to.largest}) {
      std::copy_n(from, sums->size(), sums->begin());
      from += std::ssize(*sums);
    }
  }
}

ThresholdScore ThresholdScores::score(int lead, std::size_t channel, std::size_t threshold,
                                      std::size_t region) const {
  const Table& of = tables_[index(lead, channel, threshold, region)];
  const double total = std::accumulate(of.mean.begin(), of.mean.end(), 0.0);
  const double a = of.mean[1] / total, b = of.mean[3] / total, c = of.mean[0] / total, d = of.mean[2] / total;
  ThresholdScore score;
  score.hits = a;
  score.misses = c;
  score.false_alarms = b;
  score.correct_negatives = d;
  score.base_rate = a + c;
  score.pod = a / (a + c);
  score.far = b / (a + b);
  score.csi = a / (a + b + c);
  score.frequency_bias = (a + b) / (a + c);
  score.hss = 2 * (a * d - b * c) / ((a + c) * (c + d) + (a + b) * (b + d));
  for (std::size_t s = 0; s < thresholds_.scales.size(); ++s)
    score.fss.push_back(1 - of.apart[s] / of.largest[s]);
  if (members_ > 1) add_probabilities(of, score);
  return score;
}

void ThresholdScores::add_probabilities(const Table& of, ThresholdScore& score) {
  const double total = std::accumulate(of.members.begin(), of.members.end(), 0.0);
  const std::size_t counts = of.members.size() / 2;
  for (std::size_t k = 0; k < counts; ++k) {
    const double share = static_cast<double>(k) / static_cast<double>(counts - 1), event = of.members[k],
                 none = of.members[counts + k];
    score.brier += (event * (1 - share) * (1 - share) + none * share * share) / total;
    score.forecast_share.push_back((event + none) / total);
    score.observed_frequency.push_back(event / (event + none));
    if (!(event + none > 0)) continue;
    const double came = event / (event + none), forecast = (event + none) / total;
    score.reliability += forecast * (share - came) * (share - came);
    score.resolution += forecast * (came - score.base_rate) * (came - score.base_rate);
  }
  // Trapezoids from "all members" to "any number of them".
  const double events =
      std::accumulate(of.members.begin(), of.members.begin() + static_cast<std::ptrdiff_t>(counts), 0.0);
  double reached = 0;
  for (std::size_t k = counts; k-- > 0;) {
    score.roc_area += of.members[counts + k] * (reached + of.members[k] / 2) / (events * (total - events));
    reached += of.members[k];
  }
  if (!std::isfinite(score.brier))  // where a member is missing
    score.reliability = score.resolution = score.roc_area = std::numeric_limits<double>::quiet_NaN();
  const double chance = score.base_rate * (1 - score.base_rate);
  score.brier_skill = chance > 0 ? 1 - score.brier / chance : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace jigsaw::inline evaluate
