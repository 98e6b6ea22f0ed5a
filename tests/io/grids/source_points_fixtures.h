#pragma once
#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>
#include <utility>
#include <vector>

#include "grids/source_points.h"
#include "io/grids/regrid_fixtures.h"

/// Lists of points, and what their values are elsewhere by loops over all pairs of points or cells.
namespace jigsaw::source_points_test {

using namespace regrid_test;

/// Points in rows, and what stands at them.
struct Rows {
  struct Row {
    double latitude;
    Numbers longitudes;
  };
  std::vector<Row> rows;

  Numbers latitudes() const {
    Numbers all;
    for (const Row& row : rows) all.insert(all.end(), row.longitudes.size(), row.latitude);
    return all;
  }
  Numbers longitudes() const {
    Numbers all;
    for (const Row& row : rows) all.insert(all.end(), row.longitudes.begin(), row.longitudes.end());
    return all;
  }
};

/// 20, 24, … points in a row from each pole on, as octahedral grids have them.
inline Rows octahedral(int half, bool northward) {
  Rows grid;
  for (int i = 0; i < 2 * half; ++i) {
    const int count = 20 + 4 * std::min(i, 2 * half - 1 - i);
    const double latitude = 89.0 - 178.0 * i / (2 * half - 1);
    grid.rows.push_back({northward ? -latitude : latitude, range(0, 360.0 / count, count)});
  }
  return grid;
}

/// Rings of HEALPix (Górski et al., 2005, ApJ 622:759, equations 4 to 9).
inline Rows healpix(int sides) {
  Rows grid;
  for (int i = 1; i < 4 * sides; ++i) {
    const int ring = std::min(i, 4 * sides - i);
    const bool cap = ring < sides;
    const int count = cap ? 4 * ring : 4 * sides;
    const double z = cap ? 1 - ring * ring / (3.0 * sides * sides) : 4.0 / 3 - 2.0 * ring / (3.0 * sides);
    const double latitude = std::asin(i <= 2 * sides ? z : -z) * 180 / std::numbers::pi;
    const double step = 360.0 / count, first = cap || (ring - sides) % 2 == 0 ? step / 2 : 0;
    grid.rows.push_back({latitude, range(first, step, count)});
  }
  return grid;
}

/// The points of rows in the other order.
inline Rows westward(Rows grid) {
  for (Rows::Row& row : grid.rows) std::ranges::reverse(row.longitudes);
  return grid;
}

/// Every other row the other way.
inline Rows every_other_westward(Rows grid) {
  for (std::size_t i = 1; i < grid.rows.size(); i += 2) std::ranges::reverse(grid.rows[i].longitudes);
  return grid;
}

/// Rows of several steps in an area across Greenwich.
inline Rows area() {
  Rows grid;
  for (int i = 0; i < 12; ++i) {
    const double step = 2.0 + 0.25 * i;
    Numbers longitudes = range(-15, step, static_cast<int>(50 / step) + 1);
    for (double& longitude : longitudes) longitude += longitude < 0 ? 360 : 0;
    grid.rows.push_back({30.0 + 2.5 * i, longitudes});
  }
  return grid;
}

inline Rows in_single_precision(Rows grid) {
  for (Rows::Row& row : grid.rows) {
    row.latitude = static_cast<float>(row.latitude);
    for (double& longitude : row.longitudes) longitude = static_cast<float>(longitude);
  }
  return grid;
}

inline Numbers random_values(std::size_t count, double missing, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  Numbers values;
  for (std::size_t i = 0; i < count; ++i)
    values.push_back(uniform(generator) < missing ? std::nan("") : 280 + 20 * uniform(generator));
  return values;
}

inline Numbers applied(const PointWeights& weights, const Numbers& values, std::int64_t columns,
                       std::size_t count) {
  Numbers there, out(count);
  for (const Box& box : weights.boxes()) {
    for (std::int64_t i = box.begin[0]; i < box.end(0); ++i)
      for (std::int64_t j = box.begin[1]; j < box.end(1); ++j)
        there.push_back(values[static_cast<std::size_t>(i * columns + j)]);
  }
  weights.apply<double>(there, out);
  return out;
}

/// Targets on latitudes × longitudes of equal steps.
inline TargetPoints targets(const Numbers& latitudes, const Numbers& longitudes) {
  TargetPoints points;
  const double tall = std::abs(latitudes[1] - latitudes[0]) / 2,
               wide = std::abs(longitudes[1] - longitudes[0]) / 2;
  for (const double latitude : latitudes) {
    for (const double longitude : longitudes) {
      points.latitude.push_back(latitude);
      points.longitude.push_back(longitude);
      points.cells.push_back({std::max(latitude - tall, -90.0), std::min(latitude + tall, 90.0),
                              longitude - wide, longitude + wide});
    }
  }
  return points;
}

/// A weight for each point of a list.
inline Numbers expected_weights(const Rows& grid, const TargetPoints& points, std::size_t target,
                                Regrid method) {
  Numbers latitudes, weights;
  for (const Rows::Row& row : grid.rows) latitudes.push_back(row.latitude);
  const auto append = [&](Numbers along, double share) {
    for (double& weight : along) weight *= share;
    weights.insert(weights.end(), along.begin(), along.end());
  };
  const double latitude = points.latitude[target], longitude = points.longitude[target];
  if (method != Regrid::kConservative) {
    const auto find = method == Regrid::kLinear ? hats : nearest;
    const Numbers down = find(latitudes, latitude, false);
    for (std::size_t i = 0; i < grid.rows.size(); ++i)
      append(find(grid.rows[i].longitudes, longitude, true), down[i]);
    return weights;
  }
  Numbers ascending = latitudes;
  std::ranges::sort(ascending);
  const auto limit = [&](double of, int side) {  // of the cell around a row, to the south or north
    const auto at = std::ranges::lower_bound(ascending, of) - ascending.begin();
    const auto last = std::ssize(ascending) - 1;
    const auto value = [&](std::ptrdiff_t i) { return ascending[static_cast<std::size_t>(i)]; };
    const bool globe = grid.rows[0].longitudes.size() *
                           std::abs(apart(grid.rows[0].longitudes[0], grid.rows[0].longitudes[1])) >
                       359;
    if (side < 0 && at == 0)
      return globe && of + 90 < 1.5 * (value(1) - value(0)) ? -90
                                                            : std::max(-90.0, of - (value(1) - value(0)) / 2);
    if (side > 0 && at == last)
      return globe && 90 - of < 1.5 * (value(last) - value(last - 1))
                 ? 90
                 : std::min(90.0, of + (value(last) - value(last - 1)) / 2);
    return (of + value(at + side)) / 2;
  };
  const TargetPoints::Cell& cell = points.cells[target];
  const auto sine = [](double degrees) { return std::sin(degrees * std::numbers::pi / 180); };
  for (const Rows::Row& row : grid.rows) {
    const double south = std::max(cell.south, limit(row.latitude, -1)),
                 north = std::min(cell.north, limit(row.latitude, 1));
    const double half = std::abs(apart(row.longitudes[0], row.longitudes[1])) / 2;
    Numbers along;
    for (const double centre : row.longitudes) {
      double overlap = 0;
      for (const double turn : {-720.0, -360.0, 0.0, 360.0, 720.0}) {
        overlap += std::max(
            0.0, std::min(cell.east, centre + half + turn) - std::max(cell.west, centre - half + turn));
      }
      along.push_back(overlap);
    }
    append(along, std::max(0.0, sine(north) - sine(south)));
  }
  return weights;
}

inline Numbers expected(const Rows& grid, const Numbers& values, const TargetPoints& points, Regrid method) {
  Numbers result;
  for (std::size_t p = 0; p < points.latitude.size(); ++p) {
    const Numbers weights = expected_weights(grid, points, p, method);
    double sum = 0, there = 0, all = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      all += weights[i];
      if (weights[i] == 0 || std::isnan(values[i])) continue;
      sum += weights[i] * values[i];
      there += weights[i];
    }
    result.push_back(there < (0.5 - 1e-3) * all ? std::nan("") : sum / there);
  }
  return result;
}

/// Degrees along a great circle (haversines).
inline double angle(double latitude, double longitude, double other_latitude, double other_longitude) {
  const double r = std::numbers::pi / 180;
  const double a = std::sin((latitude - other_latitude) * r / 2),
               b = std::sin((longitude - other_longitude) * r / 2);
  const double h = a * a + std::cos(latitude * r) * std::cos(other_latitude * r) * b * b;
  return 2 * std::asin(std::min(1.0, std::sqrt(h))) / r;
}

/// @param columns  0: the points are a list.
inline Numbers expected_of_scattered(const Numbers& latitudes, const Numbers& longitudes,
                                     const Numbers& values, const TargetPoints& wanted, Regrid method,
                                     std::size_t columns = 0) {
  const auto sorted_from = [&](double latitude, double longitude) {
    std::vector<std::pair<double, std::size_t>> all;
    for (std::size_t i = 0; i < latitudes.size(); ++i) {
      if (!std::isnan(latitudes[i] + longitudes[i]))
        all.emplace_back(angle(latitude, longitude, latitudes[i], longitudes[i]), i);
    }
    std::ranges::sort(all);
    return all;
  };
  const auto eighth = [&](std::size_t i) {
    const auto all = sorted_from(latitudes[i], longitudes[i]);
    return all[std::min<std::size_t>(8, all.size() - 1)].first;
  };
  // Along a chord, as it is compared.
  const auto chord = [](double degrees) { return 2 * std::sin(degrees * std::numbers::pi / 360); };
  double usual = 0;
  if (columns == 0) {
    Numbers distances;
    for (std::size_t k = 0; k < 63; ++k) {
      const std::size_t i = k * latitudes.size() / 63;
      if (!std::isnan(latitudes[i])) distances.push_back(chord(eighth(i)));
    }
    std::ranges::sort(distances);
    usual = 1.5 * distances[distances.size() / 2];
  }
  const auto reach = [&](std::size_t i) {
    if (columns == 0) return std::max(usual, chord(eighth(i)));
    double furthest = 0;
    const auto look_at = [&](bool there, std::size_t other) {
      if (there)
        furthest = std::fmax(furthest,
                             chord(angle(latitudes[i], longitudes[i], latitudes[other], longitudes[other])));
    };
    look_at(i % columns > 0, i - 1);
    look_at(i % columns + 1 < columns, i + 1);
    look_at(i >= columns, i - columns);
    look_at(i + columns < latitudes.size(), i + columns);
    return furthest;
  };
  Numbers result;
  for (std::size_t p = 0; p < wanted.latitude.size(); ++p) {
    if (std::isnan(wanted.latitude[p])) {
      result.push_back(std::nan(""));
      continue;
    }
    const auto around = sorted_from(wanted.latitude[p], wanted.longitude[p]);
    const std::size_t first = around[0].second;
    if (latitudes.size() > 1 && chord(around[0].first) > reach(first)) {
      result.push_back(std::nan(""));
      continue;
    }
    if (method == Regrid::kNearest || around[0].first < 1e-4) {
      result.push_back(values[first]);
      continue;
    }
    double sum = 0, there = 0, all = 0;
    for (std::size_t k = 0; k < std::min<std::size_t>(4, around.size()); ++k) {
      const auto [distance, i] = around[k];
      all += 1 / distance;
      if (std::isnan(values[i])) continue;
      sum += values[i] / distance;
      there += 1 / distance;
    }
    result.push_back(there < (0.5 - 1e-3) * all ? std::nan("") : sum / there);
  }
  return result;
}

}  // namespace jigsaw::source_points_test
