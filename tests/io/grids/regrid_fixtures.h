#pragma once
#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include "base/text.h"
#include "fields/file_set.h"
#include "io/netcdf_writer.h"
#include "support/temporary_folder.h"

namespace jigsaw::regrid_test {

using Numbers = std::vector<double>;

inline Numbers range(double first, double step, int count) {
  Numbers values;
  for (int i = 0; i < count; ++i) values.push_back(first + i * step);
  return values;
}

/// A dimension with its coordinate.
inline int add_axis(testing::NetcdfWriter& file, const char* name, const Numbers& values, const char* units) {
  const int dimension = file.dimension(name, values.size());
  const int coordinate = file.variable(name, NC_DOUBLE, {dimension});
  file.text(coordinate, "units", units);
  file.end();
  file.put(coordinate, values);
  if (nc_redef(file.root()) != NC_NOERR) ADD_FAILURE();
  return dimension;
}

/// b − a on the circle, in (−180, 180].
inline double apart(double a, double b) {
  double difference = std::fmod(b - a, 360.0);
  if (difference > 180) difference -= 360;
  if (difference <= -180) difference += 360;
  return difference;
}

/// Weights of all points of an axis for one point of another, by the definition of a hat function of each.
inline Numbers hats(const Numbers& there, double wanted, bool circular) {
  const auto distance = [&](double a, double b) { return circular ? apart(a, b) : b - a; };
  Numbers weights(there.size(), 0.0);
  std::size_t below = there.size(), above = there.size();
  for (std::size_t i = 0; i < there.size(); ++i) {
    const double d = distance(wanted, there[i]);
    if (d <= 0 && (below == there.size() || d > distance(wanted, there[below]))) below = i;
    if (d >= 0 && (above == there.size() || d < distance(wanted, there[above]))) above = i;
  }
  if (below == there.size() || above == there.size() || below == above) {
    weights[below == there.size() ? above : below] = 1;
    return weights;
  }
  const double low = -distance(wanted, there[below]), high = distance(wanted, there[above]);
  weights[below] += high / (low + high);
  weights[above] += low / (low + high);
  return weights;
}

/// The nearer of the two around, of two as near the lower one.
inline Numbers nearest(const Numbers& there, double wanted, bool circular) {
  Numbers weights = hats(there, wanted, circular);
  std::size_t best = there.size();
  for (std::size_t i = 0; i < there.size(); ++i) {
    const auto offset = [&](std::size_t k) { return circular ? apart(wanted, there[k]) : there[k] - wanted; };
    const bool better = best == there.size() || weights[i] > weights[best] + 1e-9 ||
                        (weights[i] > weights[best] - 1e-9 && offset(i) < offset(best));
    if (better) best = i;
  }
  std::ranges::fill(weights, 0.0);
  weights[best] = 1;
  return weights;
}

inline void expect_near(const Numbers& found, const Numbers& wanted, const std::string& what) {
  ASSERT_EQ(found.size(), wanted.size()) << what;
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(std::isnan(found[i]), std::isnan(wanted[i])) << what << ", point " << i;
    if (!std::isnan(found[i])) {
      ASSERT_NEAR(found[i], wanted[i], 1e-10) << what << ", point " << i;
    }
  }
}

inline const Field kT2m{"t2m", {}}, kSst{"sst", {}};

inline Numbers read_all(FileSet& files, const Field& field) {
  const Shape shape = files.grid().shape();
  Numbers values(static_cast<std::size_t>(shape.count()));
  files.read(field, {files.times(field).front(), 0}, {{0, 0}, shape}, values);
  return values;
}

/// Any box is read as the whole is, to the last bit.
inline void expect_pieces(FileSet& files, const Field& field, const Numbers& whole) {
  std::mt19937 generator(7);
  const Shape shape = files.grid().shape();
  for (int n = 0; n < 40; ++n) {
    Box box{{0, 0}, {0, 0}};
    for (const int axis : {0, 1}) {
      box.begin[axis] = static_cast<std::int64_t>(generator() % static_cast<std::uint64_t>(shape[axis]));
      box.extent[axis] = static_cast<std::int64_t>(
          generator() % static_cast<std::uint64_t>(shape[axis] - box.begin[axis] + 1));
    }
    Numbers piece(static_cast<std::size_t>(box.extent.count()));
    files.read(field, {files.times(field).front(), 0}, box, piece);
    for (std::int64_t i = 0; i < box.extent[0]; ++i) {
      for (std::int64_t j = 0; j < box.extent[1]; ++j) {
        const double a = piece[static_cast<std::size_t>(i * box.extent[1] + j)],
                     b = whole[static_cast<std::size_t>((box.begin[0] + i) * shape[1] + box.begin[1] + j)];
        ASSERT_TRUE(a == b || (std::isnan(a) && std::isnan(b))) << box;
      }
    }
  }
}

/// Rows and columns of a projection with t2m on them.
struct Projection {
  std::size_t rows, columns;
  Numbers latitudes, longitudes;  ///< of its points
};

/// 9 x 11 points `step` degrees apart on a plane that touches the earth at a place.
inline Projection projection(double latitude, double longitude, double step) {
  Projection result{9, 11, {}, {}};
  const double radians = std::numbers::pi / 180, middle = latitude * radians;
  for (std::size_t i = 0; i < result.rows; ++i) {
    for (std::size_t j = 0; j < result.columns; ++j) {
      const double x = (static_cast<double>(j) - 5) * step * radians,
                   y = (4.2 - static_cast<double>(i)) * step * radians;
      const double r = std::hypot(x, y), c = 2 * std::atan(r / 2);
      result.latitudes.push_back(
          std::asin(std::cos(c) * std::sin(middle) + (r > 0 ? y * std::sin(c) * std::cos(middle) / r : 0)) /
          radians);
      result.longitudes.push_back(
          longitude + std::atan2(x * std::sin(c),
                                 r * std::cos(middle) * std::cos(c) - y * std::sin(middle) * std::sin(c)) /
                          radians);
    }
  }
  return result;
}

/// @param values  of the field at one time; 1 unless given.
inline std::string write(const testing::TemporaryFolder& folder, const Projection& grid,
                         const std::string& name = "t2m", Numbers values = {}) {
  const std::string path = concat(folder.path(), "/projected.nc");
  testing::NetcdfWriter file(path, NC_NETCDF4);
  const int time = file.dimension("time", 1), y = file.dimension("y", grid.rows),
            x = file.dimension("x", grid.columns);
  const int times = file.variable("time", NC_DOUBLE, {time});
  file.text(times, "units", "hours since 2020-01-01");
  const int latitudes = file.variable("lat", NC_DOUBLE, {y, x}),
            longitudes = file.variable("lon", NC_DOUBLE, {y, x});
  file.text(latitudes, "units", "degrees_north");
  file.text(longitudes, "units", "degrees_east");
  const int field = file.variable(name, NC_DOUBLE, {time, y, x});
  file.text(field, "coordinates", "lat lon");
  file.end();
  file.put(times, Numbers{0.0});
  file.put(latitudes, grid.latitudes);
  file.put(longitudes, grid.longitudes);
  if (values.empty()) values.assign(grid.latitudes.size(), 1.0);
  file.put(field, values);
  return path;
}

}  // namespace jigsaw::regrid_test
