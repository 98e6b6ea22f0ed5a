#include "grids/source_points.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <utility>

#include "base/error.h"
#include "grids/degrees.h"

namespace jigsaw::inline grids {

PointWeights GridPoints::weights(const TargetPoints& targets, Regrid method) const {
  const auto width = std::ssize(columns_.points());
  PointWeights weights(width);
  std::optional<std::int64_t> reference;  // the column that others are counted around
  for (std::size_t p = 0; p < targets.latitude.size(); ++p) {
    const double latitude = targets.latitude[p], longitude = targets.longitude[p];
    if (std::isnan(latitude) || std::isnan(longitude)) {
      weights.end_target();
      continue;
    }
    const std::optional<SourceAxis::Between> row = rows_.between(latitude, method);
    std::optional<SourceAxis::Between> column = columns_.between(columns_.here(longitude), method);
    if (!row || !column) {
      weights.end_beyond();
      continue;
    }
    if (columns_.circular()) {
      if (!reference) reference = column->first;
      const double turns =
          static_cast<double>(*reference - column->first) / static_cast<double>(columns_.size());
      column->first += columns_.size() * static_cast<std::int64_t>(std::round(turns));
    }
    for (const int i : {0, 1}) {
      const double down = i == 0 ? 1 - row->part : row->part;
      for (const int j : {0, 1}) {
        weights.add((row->first + rows_.origin() + i) * width + column->first + columns_.origin() + j,
                    down * (j == 0 ? 1 - column->part : column->part));
      }
    }
    weights.end_target();
  }
  weights.finish();
  return weights;
}

std::int64_t RowPoints::Row::point(std::int64_t i) const {
  return begin + stride * ((i % count + count) % count);
}

/// Nothing where the points from `begin` on are in no equal steps.
std::optional<RowPoints::Row> RowPoints::row_of(std::span<const double> latitudes,
                                                std::span<const double> longitudes, std::size_t begin,
                                                std::size_t end) {
  Row row{latitudes[begin], static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end - begin),
          longitudes[begin], kCircle};
  const auto steps = static_cast<double>(row.count - 1);
  if (row.count > 1) {
    row.step = on_circle(longitudes[begin + 1] - longitudes[begin]);
    if (row.step > kCircle / 2) {
      row.stride = -1;
      row.begin = static_cast<std::int64_t>(end) - 1;
      row.first = longitudes[end - 1];
      row.step = kCircle - row.step;
    }
    const auto other_end = static_cast<std::size_t>(row.begin + row.stride * (row.count - 1));
    // From the last one, which single precision leaves more digits of the step.
    const double whole = row.step * steps, last = on_circle(longitudes[other_end] - row.first);
    row.step = (last + kCircle * std::round((whole - last) / kCircle)) / steps;
  }
  if (!(row.step > 0) || !(row.step * steps < kCircle) || std::isnan(row.latitude)) return std::nullopt;
  row.circular = std::abs(row.step * static_cast<double>(row.count) - kCircle) < 0.1 * row.step;
  if (row.circular) row.step = kCircle / static_cast<double>(row.count);
  for (std::int64_t i = 0; i < row.count; ++i) {
    const double off =
        longitudes[static_cast<std::size_t>(row.point(i))] - row.first - row.step * static_cast<double>(i);
    if (!(std::abs(off - kCircle * std::round(off / kCircle)) < kSameDegrees)) return std::nullopt;
  }
  return row;
}

std::shared_ptr<const RowPoints> RowPoints::find(std::span<const double> latitudes,
                                                 std::span<const double> longitudes) {
  constexpr std::size_t kFewest = 4, kFirst = 64;  // points a row, on average; rows before that counts
  std::vector<Row> rows;
  const std::size_t count = latitudes.size();
  for (std::size_t begin = 0, end = 0; begin < count; begin = end) {
    while (end < count && latitudes[end] == latitudes[begin]) ++end;
    if (end == begin) return nullptr;  // a latitude that is no number
    const std::optional<Row> row = row_of(latitudes, longitudes, begin, end);
    if (!row) return nullptr;
    rows.push_back(*row);
    if ((rows.size() > kFirst || end == count) && rows.size() * kFewest > end) return nullptr;
  }
  if (rows.size() < 2) return nullptr;
  if (rows[0].latitude > rows[1].latitude) std::ranges::reverse(rows);
  const auto no_step = [](const Row& a, const Row& b) { return !(b.latitude - a.latitude > kSameDegrees); };
  if (std::ranges::adjacent_find(rows, no_step) != rows.end()) return nullptr;
  return std::shared_ptr<const RowPoints>(new RowPoints(std::move(rows)));
}

RowPoints::RowPoints(std::vector<Row> rows)
    : rows_(std::move(rows)), latitudes_([&] {
        std::vector<double> latitudes;
        for (const Row& row : rows_) latitudes.push_back(row.latitude);
        return SourceAxis::latitude(latitudes);
      }()) {
  if (round_the_globe()) latitudes_.end_at_poles();
}

bool RowPoints::round_the_globe() const {
  return std::ranges::all_of(rows_, &Row::circular);
}

/// From the first point of a row eastward, in steps: of a circle in [0, count), else around its middle.
double RowPoints::offset(const Row& row, double longitude) {
  const double degrees = longitude - row.first;
  if (row.circular) return on_circle(degrees) / row.step;
  const double middle = 0.5 * row.step * static_cast<double>(row.count - 1);
  return (degrees - kCircle * std::round((degrees - middle) / kCircle)) / row.step;
}

std::optional<RowPoints::Along> RowPoints::along(const Row& row, double longitude, Regrid method) {
  const double x = offset(row, longitude), same = kSameDegrees / row.step;
  const auto last = static_cast<double>(row.count - 1);
  if (!row.circular && (x < -0.5 - same || x > last + 0.5 + same)) return std::nullopt;
  double whole = std::floor(x), part = x - whole;
  if (!row.circular && (x <= 0 || x >= last)) {
    whole = x <= 0 ? 0 : last;
    part = 0;
  }
  if (part < same) part = 0;
  if (1 - part < same) part = 1;
  // In the middle rounding of coordinates does not decide.
  if (method == Regrid::kNearest) part = part < 0.5 + 0.5 * same ? 0 : 1;
  const auto i = static_cast<std::int64_t>(whole);
  if (part == 1) return Along{row.point(i + 1), row.point(i + 1), 0};
  return Along{row.point(i), row.point(i + 1), part};
}

bool RowPoints::add_between(PointWeights& weights, double latitude, double longitude, Regrid method) const {
  const std::optional<SourceAxis::Between> between = latitudes_.between(latitude, method);
  if (!between) return false;
  for (const int i : {0, 1}) {
    const double down = i == 0 ? 1 - between->part : between->part;
    if (down == 0) continue;
    const std::optional<Along> here =
        along(rows_[static_cast<std::size_t>(between->first + i)], longitude, method);
    if (!here) return false;
    weights.add(here->point, down * (1 - here->part));
    weights.add(here->next, down * here->part);
  }
  return true;
}

/// Cells of a row in an interval of longitudes, weighted by their share of it.
/// @returns  the share that they have of it.
double RowPoints::add_cells(const Row& row, double west, double east, double weight, PointWeights& weights) {
  const double low = offset(row, west), high = low + (east - west) / row.step;
  std::int64_t first = std::llround(std::floor(low + 0.5)), last = std::llround(std::ceil(high - 0.5));
  if (!row.circular) {
    first = std::max<std::int64_t>(first, 0);
    last = std::min(last, row.count - 1);
  }
  double sum = 0;
  for (std::int64_t i = first; i <= last; ++i) {
    const auto centre = static_cast<double>(i);
    const double share = std::min(high, centre + 0.5) - std::max(low, centre - 0.5);
    if (!(share > 0)) continue;
    weights.add(row.point(i), weight * share / (high - low));
    sum += share / (high - low);
  }
  return sum;
}

bool RowPoints::add_mean(PointWeights& weights, const TargetPoints::Cell& cell) const {
  const auto sine = [](double degrees) { return std::sin(degrees * std::numbers::pi / 180); };
  const double height = sine(cell.north) - sine(cell.south);
  double covered = 0;
  for (std::int64_t i = std::max<std::int64_t>(latitudes_.before(cell.south) - 1, 0);
       i < latitudes_.size() && latitudes_.low(i) < cell.north; ++i) {
    const double low = std::max(cell.south, latitudes_.low(i)),
                 high = std::min(cell.north, latitudes_.high(i));
    if (!(high > low)) continue;
    const double share = (sine(high) - sine(low)) / height;
    covered += share * add_cells(rows_[static_cast<std::size_t>(i)], cell.west, cell.east, share, weights);
  }
  return covered >= 0.5;
}

PointWeights RowPoints::weights(const TargetPoints& targets, Regrid method) const {
  require(method != Regrid::kConservative || targets.cells.size() == targets.latitude.size(),
          "means over cells have cells");
  PointWeights weights(0);
  for (std::size_t p = 0; p < targets.latitude.size(); ++p) {
    const double latitude = targets.latitude[p], longitude = targets.longitude[p];
    const bool placed = !std::isnan(latitude) && !std::isnan(longitude);
    const bool there =
        !placed || (method == Regrid::kConservative ? add_mean(weights, targets.cells[p])
                                                    : add_between(weights, latitude, longitude, method));
    if (there) {
      weights.end_target();
    } else {
      weights.end_beyond();
    }
  }
  weights.finish();
  return weights;
}

ScatteredPoints::ScatteredPoints(std::vector<double> latitudes, std::vector<double> longitudes,
                                 std::int64_t columns)
    : latitudes_(std::move(latitudes)), longitudes_(std::move(longitudes)), columns_(columns) {
  require(latitudes_.size() == longitudes_.size(), "each point has a latitude and a longitude");
  if (columns_ == 0) reach_ = usual_reach();
}

/// The same for longitudes that differ by a circle.
UnitVector ScatteredPoints::at(std::size_t point) const {
  const double longitude = longitudes_[point];
  return unit_vector(latitudes_[point], std::isnan(longitude) ? longitude : on_circle(longitude));
}

/// One and a half times how far the eighth neighbour is, at the middle one of some points of a list.
double ScatteredPoints::usual_reach() const {
  constexpr std::size_t kSamples = 63, kOwn = 8;
  std::vector<double> distances;
  for (std::size_t k = 0; k < kSamples && !latitudes_.empty(); ++k) {
    const UnitVector here = at(k * size() / kSamples);
    std::vector<double> nearest;  // a heap with the furthest first; the point itself is the nearest
    for (std::size_t i = 0; i < size(); ++i) {
      const double chord = chord_between(at(i), here);
      if (std::isnan(chord) || (nearest.size() > kOwn && chord >= nearest.front())) continue;
      if (nearest.size() > kOwn) {
        std::ranges::pop_heap(nearest);
        nearest.pop_back();
      }
      nearest.push_back(chord);
      std::ranges::push_heap(nearest);
    }
    if (nearest.size() > 1) distances.push_back(nearest.front());
  }
  if (distances.empty()) return 0;
  const auto middle = distances.begin() + std::ssize(distances) / 2;
  std::nth_element(distances.begin(), middle, distances.end());
  return 1.5 * *middle;
}

/// The furthest of those before and behind a point in its row and its column.
double ScatteredPoints::reach_in_plane(std::size_t point) const {
  const auto columns = static_cast<std::size_t>(columns_), column = point % columns;
  double furthest = 0;
  const auto look_at = [&](std::size_t other) {
    furthest = std::fmax(furthest, chord_between(at(point), at(other)));  // of one without a place: no number
  };
  if (column > 0) look_at(point - 1);
  if (column + 1 < columns) look_at(point + 1);
  if (point >= columns) look_at(point - columns);
  if (point + columns < size()) look_at(point + columns);
  return furthest;
}

/// Those of the points that lie within some distance of the targets.
class ScatteredPoints::Near {
 public:
  /// @param margin  in radii of the sphere.
  Near(const ScatteredPoints& all, const std::vector<UnitVector>& targets, double margin)
      : all_(all), points_(select(all, targets, margin)), margin_(margin) {}

  /// The `count` nearest points to a target, none where it is beyond the reach of all of them.
  /// @returns  false where others may be nearer that have been left out.
  bool find(const UnitVector& target, std::size_t count, std::vector<NearestPoints::Neighbour>& found) {
    const bool whole = margin_ >= kWholeSphere;
    points_.find(target, count, found);
    if (!whole && (found.size() < count || found.back().chord > margin_)) return false;
    if (found.empty()) return true;
    const NearestPoints::Neighbour nearest = found.front();
    const auto point = static_cast<std::size_t>(nearest.number);
    const double reach = all_.columns_ > 0 ? all_.reach_in_plane(point) : all_.reach_;
    if (nearest.chord <= reach || all_.size() == 1) return true;
    if (all_.columns_ == 0) {
      constexpr std::size_t kOwn = 8;  // neighbours of the point, which itself is the first
      points_.find(*nearest.at, kOwn + 1, around_);
      const double own = around_.back().chord;
      if (!whole && (around_.size() <= kOwn || nearest.chord + own > margin_)) return false;
      if (nearest.chord <= own) return true;
    }
    found.clear();
    return true;
  }

  static constexpr double kWholeSphere = 2;

 private:
  static std::vector<NearestPoints::Point> select(const ScatteredPoints& all,
                                                  const std::vector<UnitVector>& targets, double margin) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    UnitVector low = {kInfinity, kInfinity, kInfinity}, high = {-kInfinity, -kInfinity, -kInfinity};
    for (const UnitVector& target : targets) {
      for (std::size_t d = 0; d < 3; ++d) {
        low[d] = std::min(low[d], target[d] - margin);
        high[d] = std::max(high[d], target[d] + margin);
      }
    }
    std::vector<NearestPoints::Point> points;
    for (std::size_t i = 0; i < all.latitudes_.size(); ++i) {
      const UnitVector at = all.at(i);
      bool within = true;  // false of NaN
      for (std::size_t d = 0; d < 3; ++d) within = within && at[d] >= low[d] && at[d] <= high[d];
      if (within) points.push_back({at, static_cast<std::int64_t>(i)});
    }
    // Of points that stand several times, as in the halo of ORCA grids, the first one counts: they are one
    // neighbour.
    const auto before = [](const NearestPoints::Point& a, const NearestPoints::Point& b) {
      return a.at == b.at ? a.number < b.number : a.at < b.at;
    };
    std::sort(points.begin(), points.end(), before);
    const auto same = [](const NearestPoints::Point& a, const NearestPoints::Point& b) {
      return a.at == b.at;
    };
    points.erase(std::unique(points.begin(), points.end(), same), points.end());
    return points;
  }

  const ScatteredPoints& all_;
  NearestPoints points_;
  double margin_;
  std::vector<NearestPoints::Neighbour> around_;
};

PointWeights ScatteredPoints::weights(const TargetPoints& targets, Regrid method) const {
  require(method == Regrid::kNearest || method == Regrid::kInverseDistance, "scattered points have no cells");
  std::vector<UnitVector> places;
  for (std::size_t p = 0; p < targets.latitude.size(); ++p) {
    const UnitVector place = unit_vector(targets.latitude[p], targets.longitude[p]);
    if (!std::isnan(place[0] + place[1])) places.push_back(place);
  }
  // Of points that cover the sphere the nearest are about half a step away.
  const double step = std::sqrt(4 * std::numbers::pi / static_cast<double>(latitudes_.size() + 1));
  const std::size_t count = method == Regrid::kNearest ? 1 : 4;
  for (double margin = 5 * step;; margin *= 4) {
    Near near(*this, places, margin);
    PointWeights weights(columns_);
    std::vector<NearestPoints::Neighbour> found;
    std::size_t next = 0;
    bool complete = true;
    for (std::size_t p = 0; p < targets.latitude.size() && complete; ++p) {
      found.clear();
      if (!std::isnan(targets.latitude[p]) && !std::isnan(targets.longitude[p]))
        complete = near.find(places[next++], count, found);
      const auto angle = [](double chord) { return 2 * std::asin(std::min(0.5 * chord, 1.0)); };
      constexpr double kSame = kSameDegrees * std::numbers::pi / 180;
      if (!found.empty() && (count == 1 || angle(found[0].chord) < kSame)) found.resize(1);
      for (const NearestPoints::Neighbour& one : found)
        weights.add(one.number, found.size() == 1 ? 1 : 1 / angle(one.chord));
      weights.end_target();
    }
    if (!complete) continue;
    weights.finish();
    return weights;
  }
}

}  // namespace jigsaw::inline grids
