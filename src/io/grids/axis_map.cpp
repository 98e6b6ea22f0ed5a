#include "grids/axis_map.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "grids/degrees.h"

namespace jigsaw::inline grids {

namespace {

/// The points of a file, found by their coordinates.
class Points {
 public:
  Points(const std::vector<double>& there, bool circular) : circular_(circular) {
    for (std::size_t i = 0; i < there.size(); ++i) {
      sorted_.emplace_back(circular ? on_circle(there[i]) : there[i], static_cast<std::int64_t>(i));
    }
    std::sort(sorted_.begin(), sorted_.end());
  }

  /// The index of the point nearest to a coordinate, or -1.
  std::int64_t find(double coordinate) const {
    if (sorted_.empty()) return -1;
    const double wanted = circular_ ? on_circle(coordinate) : coordinate;
    auto after = std::lower_bound(sorted_.begin(), sorted_.end(), std::pair{wanted, std::int64_t{-1}});
    auto before = after;
    if (after == sorted_.end()) after = circular_ ? sorted_.begin() : sorted_.end() - 1;
    if (before == sorted_.begin()) before = circular_ ? sorted_.end() : sorted_.begin() + 1;
    --before;
    const auto& nearest =
        distance(after->first, wanted) <= distance(before->first, wanted) ? *after : *before;
    return distance(nearest.first, wanted) < kSameDegrees ? nearest.second : -1;
  }

 private:
  double distance(double a, double b) const {
    const double apart = std::abs(a - b);
    return circular_ ? std::min(apart, kCircle - apart) : apart;
  }

  bool circular_;
  std::vector<std::pair<double, std::int64_t>> sorted_;
};

/// The distance by which most points stand apart.
std::int64_t usual_step(const std::vector<std::int64_t>& indices) {
  std::map<std::int64_t, std::int64_t> counts;
  for (std::size_t i = 1; i < indices.size(); ++i) ++counts[indices[i] - indices[i - 1]];
  const auto most = std::max_element(counts.begin(), counts.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == counts.end() ? 1 : most->first;
}

}  // namespace

std::optional<AxisMap> AxisMap::make(const std::vector<double>& wanted, const std::vector<double>& there,
                                     bool circular) {
  const Points points(there, circular);
  std::vector<std::int64_t> indices;
  for (const double coordinate : wanted) {
    indices.push_back(points.find(coordinate));
    if (indices.back() < 0) return std::nullopt;
  }
  const std::int64_t step = usual_step(indices);
  AxisMap map;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (i > 0 && indices[i] - indices[i - 1] == step) {
      ++map.runs_.back().count;
    } else {
      map.runs_.push_back({static_cast<std::int64_t>(i), 1, indices[i], step});
    }
  }
  return map;
}

std::optional<AxisMap> AxisMap::make(AxisWeights weights, const std::vector<double>& there, bool circular) {
  std::optional<AxisMap> map = make(weights.points(), there, circular);
  if (map) map->weights_ = std::make_shared<AxisWeights>(std::move(weights));
  return map;
}

bool AxisMap::consecutive() const {
  return std::ranges::all_of(runs_,
                             [](const AxisRun& run) { return run.count == 1 || std::abs(run.step) == 1; });
}

AxisInterval AxisMap::needed(std::int64_t begin, std::int64_t count) const {
  return weights_ ? weights_->needed(begin, count) : AxisInterval{begin, count};
}

std::vector<AxisRun> AxisMap::runs(std::int64_t begin, std::int64_t count) const {
  std::vector<AxisRun> result;
  for (const AxisRun& run : runs_) {
    const std::int64_t first = std::max(begin, run.begin);
    const std::int64_t end = std::min(begin + count, run.begin + run.count);
    if (first >= end) continue;
    result.push_back({first, end - first, run.first + (first - run.begin) * run.step, run.step});
  }
  return result;
}

std::vector<double> without_jumps(std::vector<double> longitudes) {
  double turns = 0;
  for (std::size_t i = 1; i < longitudes.size(); ++i) {
    const double step = longitudes[i] + turns - longitudes[i - 1];
    if (std::abs(step) > kCircle / 2) turns -= std::copysign(kCircle, step);
    longitudes[i] += turns;
  }
  const bool repeats = longitudes.size() > 2 &&
                       std::abs(std::abs(longitudes.back() - longitudes.front()) - kCircle) < kSameDegrees;
  if (repeats) longitudes.pop_back();
  return longitudes;
}

std::vector<double> latitudes_within(const std::vector<double>& latitudes, double south, double north) {
  std::vector<double> result;
  std::copy_if(latitudes.begin(), latitudes.end(), std::back_inserter(result), [&](double latitude) {
    return latitude > south - kSameDegrees && latitude < north + kSameDegrees;
  });
  return result;
}

std::vector<double> longitudes_within(const std::vector<double>& longitudes, double west, double east) {
  const double rest = on_circle(east - west), width = rest < kSameDegrees ? kCircle : rest;
  std::vector<double> offsets;
  for (const double longitude : longitudes) {
    double offset = on_circle(longitude - west);
    if (kCircle - offset < kSameDegrees) offset -= kCircle;  // the western end, a little beyond it
    // Both ends of a whole circle are one column.
    if (offset < width + (width < kCircle ? kSameDegrees : -kSameDegrees)) offsets.push_back(offset);
  }
  const bool westward = longitudes.size() > 1 && without_jumps(longitudes)[1] < longitudes[0];
  std::sort(offsets.begin(), offsets.end());
  // A first column that is repeated as the last one.
  const auto twice = [](double a, double b) { return b - a < kSameDegrees; };
  offsets.erase(std::unique(offsets.begin(), offsets.end(), twice), offsets.end());
  if (westward) std::reverse(offsets.begin(), offsets.end());
  std::vector<double> result;
  for (const double offset : offsets) result.push_back(west + offset);
  return result;
}

bool alike_corners(const std::vector<double>& a, const std::vector<double>& b) {
  constexpr double kSamePlace = 1e-3;  // degrees
  if (a.size() != b.size()) return false;
  // What earlier versions kept of corners without a place, which files say by zeros.
  const auto may_lack = [](double degrees) { return std::isnan(degrees) || degrees == 0; };
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) != std::isnan(b[i])) {
      if (may_lack(a[i]) && may_lack(b[i])) continue;
      return false;
    }
    const double apart = on_circle(a[i] - b[i]);  // no two latitudes are a circle apart
    if (apart > kSamePlace && kCircle - apart > kSamePlace) return false;
  }
  return true;
}

bool alike(const GridOrder& a, const GridOrder& b) {
  if (!a.corners.empty() || !b.corners.empty()) return alike_corners(a.corners, b.corners);
  for (std::size_t end = 0; end < 2; ++end) {
    const double columns = on_circle(a.columns[end] - b.columns[end]);
    if (std::abs(a.rows[end] - b.rows[end]) > kSameDegrees) return false;
    if (columns > kSameDegrees && kCircle - columns > kSameDegrees) return false;
  }
  return true;
}

namespace {

/// Coordinates without jumps, ascending where the others do.
std::vector<double> in_direction_of(const std::array<double, 2>& others, std::vector<double> coordinates) {
  if (coordinates.size() < 2 || others[0] == others[1]) return coordinates;
  if ((coordinates.front() < coordinates.back()) != (others[0] < others[1]))
    std::ranges::reverse(coordinates);
  return coordinates;
}

}  // namespace

std::vector<double> latitudes_like(std::vector<double> latitudes, const std::array<double, 2>& others) {
  return in_direction_of(others, std::move(latitudes));
}

std::vector<double> longitudes_like(std::vector<double> longitudes, const std::array<double, 2>& others) {
  if (longitudes.size() < 2) return longitudes;
  longitudes = in_direction_of(others, std::move(longitudes));
  const double step = longitudes[1] - longitudes[0], last = longitudes.back() + step;
  if (std::abs(std::abs(last - longitudes.front()) - kCircle) > std::abs(step) / 2) return longitudes;
  const auto first = std::ranges::find_if(longitudes, [&](double longitude) {
    const double offset = on_circle(longitude - others[0]);
    return offset < kSameDegrees || kCircle - offset < kSameDegrees;
  });
  if (first == longitudes.end()) return longitudes;
  std::rotate(longitudes.begin(), first, longitudes.end());
  longitudes = without_jumps(std::move(longitudes));
  const double turns = kCircle * std::round((longitudes.front() - others[0]) / kCircle);
  for (double& longitude : longitudes) longitude -= turns;
  return longitudes;
}

std::vector<double> every_of(const std::vector<double>& coordinates, std::int64_t every) {
  std::vector<double> result;
  for (std::size_t i = 0; i < coordinates.size(); i += static_cast<std::size_t>(every)) {
    result.push_back(coordinates[i]);
  }
  return result;
}

}  // namespace jigsaw::inline grids
