// Grids of GRIB messages: their rows, columns and points, and the dimensions that variables have of them.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "base/file_kind.h"
#include "files/grib_handle.h"

namespace jigsaw::inline files {

/// Of what cdo does not read, or reads wrong.
constexpr const char* kFromItsSource =
    "take it on such a grid from its source (the key grid of requests to MARS or the Climate Data Store), or "
    "interpolate it beforehand";

std::string conversion(const std::string& grid_type, bool to_and_fro, const std::string& path) {
  const std::string to = std::filesystem::path(path).replace_extension(".nc").string();
  const auto command = [&](const std::string& operation) {
    return concat("convert it with: cdo -f nc4 ", operation, " ", shell_word(path), " ", shell_word(to));
  };
  if (to_and_fro) return kFromItsSource;
  if (grid_type == "regular_ll" || grid_type == "regular_gg") return command("-copy");
  if (grid_type == "reduced_gg") return command("-setgridtype,regular");
  if (grid_type == "sh") return command("-sp2gpl");
  for (const char* projected : {"rotated_ll", "lambert", "polar_stereographic"})
    if (grid_type == projected) return command("-setgridtype,curvilinear");
  if (grid_type == "unstructured_grid")
    return concat(command("-setgrid,GRIDFILE"), ", where GRIDFILE is the model's own file of its grid");
  return kFromItsSource;
}

namespace {

/// From the first to the last, in equal steps.
std::vector<double> spread(double first, double last, std::int64_t count) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) {
    const double share = count > 1 ? static_cast<double>(i) / static_cast<double>(count - 1) : 0;
    values.push_back(i + 1 == count && count > 1 ? last : first + (last - first) * share);
  }
  return values;
}

/// The ends of an axis, which messages round, as they were before where equal parts of a circle fit to them:
/// of steps of a third of a degree edition 1 says 11.667, and edition 2 11.666667. Of several numbers of
/// parts that with the most small factors is taken, for of a short axis the step is known to a few
/// thousandths of itself.
/// @param rounding  by so much they may be off.
std::pair<double, double> unrounded(double first, double last, std::int64_t count, double rounding) {
  constexpr double kCircle = 360, kLeastSteps = 20;
  constexpr std::int64_t kSmallFactors = 432000;  // 2^7 3^3 5^3
  const auto steps = static_cast<double>(count - 1);
  const double step = count > 1 ? (last - first) / steps : 0, off = 2 * rounding / std::max(steps, 1.0);
  std::pair<double, double> best = {first, last};
  if (!(std::abs(step) > kLeastSteps * rounding)) return best;
  std::pair<bool, std::int64_t> score = {false, 0};
  const auto most = static_cast<std::int64_t>(kCircle / (std::abs(step) - off));
  for (auto parts = static_cast<std::int64_t>(std::ceil(kCircle / (std::abs(step) + off))); parts <= most;
       ++parts) {
    const double exact = std::copysign(kCircle / static_cast<double>(parts), step);
    const double nearest = exact / 2 * std::round(first / (exact / 2));
    const bool begins = std::abs(nearest - first) <= rounding;
    const double begin = begins ? nearest : first, end = begin + exact * steps;
    const std::pair found{begins, std::gcd(parts, kSmallFactors)};
    if (std::abs(end - last) > (begins ? 1 : 2) * rounding || found <= score) continue;
    score = found;
    best = {begin, end};
  }
  return best;
}

/// The `rows` circles of latitude from that nearest to `first` on of `all` of a Gaussian grid, in degrees
/// from north to south; messages name the first and the last one in thousandths of a degree. Empty where it
/// has not those.
std::vector<double> gaussian_rows(std::vector<double> all, double first, double last, std::int64_t rows) {
  constexpr double kRounded = 2e-3;
  if (first < last) std::reverse(all.begin(), all.end());
  const auto begin =
      std::ranges::min_element(all, {}, [first](double latitude) { return std::abs(latitude - first); });
  if (std::abs(*begin - first) > kRounded || all.end() - begin < rows) return {};
  std::vector<double> found(begin, begin + rows);
  if (std::abs(found.back() - last) > kRounded) return {};
  return found;
}

}  // namespace

std::vector<double> GribFile::gaussian_latitudes(const Handle& handle, std::string& fault) const {
  const std::int64_t rows = handle.integer("Nj"), circles = 2 * handle.integer("N");
  const double first = handle.real("latitudeOfFirstGridPointInDegrees"),
               last = handle.real("latitudeOfLastGridPointInDegrees");
  std::vector<double> found;
  if (rows >= 1 && circles >= rows && circles <= kMostCircles) {
    std::vector<double> all(static_cast<std::size_t>(circles));
    handle.check(codes_get_gaussian_latitudes(circles / 2, all.data()), "N");
    found = gaussian_rows(std::move(all), first, last, rows);
  }
  if (found.empty())
    fault = concat("it is on ", rows, " rows from ", first, " to ", last,
                   " degrees, which a Gaussian grid of ", circles, " circles of latitude has not");
  return found;
}

int GribFile::grid_of(const Handle& handle, std::vector<double> latitudes) {
  const std::int64_t columns = handle.integer("Ni"), rows = handle.integer("Nj"),
                     points = handle.integer("numberOfDataPoints");
  if (columns < 1 || rows < 1 || columns > kMostPoints || rows > kMostPoints || columns * rows != points) {
    throw DataError(concat("cannot read ", path(), ": a grid of ", rows, " x ", columns,
                           " points has the number of points ", points));
  }
  require_memory({rows, columns}, "a field", path());
  const double south_or_north = handle.real("latitudeOfFirstGridPointInDegrees"),
               other = handle.real("latitudeOfLastGridPointInDegrees"),
               west_or_east = handle.real("longitudeOfFirstGridPointInDegrees");
  double last = handle.real("longitudeOfLastGridPointInDegrees");
  constexpr double kMost = 1000;
  for (const double degrees : {south_or_north, other, west_or_east, last})
    if (!(std::abs(degrees) < kMost))
      throw DataError(concat("cannot read ", path(), ": a grid begins or ends at ", degrees, " degrees"));
  const bool to_west = handle.integer("iScansNegatively") != 0;
  constexpr double kCircle = 360;
  while (!to_west && last < west_or_east) last += kCircle;
  while (to_west && last > west_or_east) last -= kCircle;
  // Half of the last digit, and what the number itself is rounded by.
  constexpr double kHalf = 0.51, kEdition1 = 1e-3, kEdition2 = 1e-6;
  const double rounding = kHalf * (handle.integer("edition") == 1 ? kEdition1 : kEdition2);
  const auto in_steps = [&](double from, double to, std::int64_t count) {
    const auto [begin, end] = unrounded(from, to, count, rounding);
    return spread(begin, end, count);
  };
  if (latitudes.empty()) latitudes = in_steps(south_or_north, other, rows);
  Grid grid{std::move(latitudes), in_steps(west_or_east, last, columns),
            handle.integer("jPointsAreConsecutive") != 0};
  return number_of(std::move(grid));
}

int GribFile::number_of(Grid grid) {
  const auto found = std::find(grids_.begin(), grids_.end(), grid);
  if (found != grids_.end()) return static_cast<int>(found - grids_.begin());
  grids_.push_back(std::move(grid));
  return static_cast<int>(grids_.size()) - 1;
}

int GribFile::reduced_grid_of(const Handle& handle, std::vector<double> latitudes, std::string& fault) {
  std::vector<std::int64_t> in_row;
  for (const long points : handle.integers("pl")) in_row.push_back(points);
  const std::int64_t points = handle.integer("numberOfDataPoints");
  std::int64_t most = 0, sum = 0;
  for (const std::int64_t count : in_row) {
    most = std::max(most, count);
    sum += std::clamp<std::int64_t>(count, 0, kMostPoints);
  }
  constexpr double kCircle = 360, kRounded = 2e-3;
  const double west = handle.real("longitudeOfFirstGridPointInDegrees"),
               east = handle.real("longitudeOfLastGridPointInDegrees");
  const double step = kCircle / static_cast<double>(std::max<std::int64_t>(most, 1));
  const bool whole = std::abs(west) < kRounded && std::abs(east - (kCircle - step)) < kRounded + 0.1 * step;
  const bool to_and_fro = handle.integer("alternativeRowScanning") != 0;
  const bool filled = std::ranges::all_of(in_row, [](std::int64_t count) { return count > 0; });
  if (sum != points || !filled || in_row.size() != latitudes.size() || !whole ||
      handle.integer("iScansNegatively") != 0 || handle.integer("jPointsAreConsecutive") != 0 || to_and_fro) {
    fault = concat("it is on a part of a reduced Gaussian grid, from ", west, " to ", east,
                   " degrees east, and those round the globe are read; ",
                   conversion("reduced_gg", to_and_fro, path()));
    return -1;
  }
  require_memory({1, points}, "a field", path());
  return number_of({std::move(latitudes), {}, false, std::move(in_row)});
}

std::vector<std::int64_t> GribFile::add_plane(FileVariable& variable, const Grid& grid) {
  if (!grid.in_row.empty()) return {add_points(variable, grid)};
  std::vector<std::int64_t> extents;
  for (const bool of_columns : {grid.columns_first, !grid.columns_first}) {
    const std::vector<double>& values = of_columns ? grid.longitudes : grid.latitudes;
    const std::string name = of_columns ? "longitude" : "latitude";
    variable.dimensions.push_back(dimension(
        name, values, {{"units", of_columns ? "degrees_east" : "degrees_north"}, {"standard_name", name}}));
    variable.chunks.append(std::ssize(values));
    extents.push_back(std::ssize(values));
  }
  return extents;
}

/// The dimension of the points of a reduced grid, with their latitudes and longitudes.
/// @return  how many there are
std::int64_t GribFile::add_points(FileVariable& variable, const Grid& grid) {
  const auto points = std::accumulate(grid.in_row.begin(), grid.in_row.end(), std::int64_t{0});
  std::string suffix;
  for (int number = 2;; ++number) {
    const FileVariable* known = find("latitude" + suffix);
    if (known == nullptr) break;
    const Array& array = arrays_[static_cast<std::size_t>(known->id)];
    if (array.in_row == grid.in_row && array.values == grid.latitudes) break;
    suffix = concat("_", number);
  }
  const std::string name = "values" + suffix;
  variable.dimensions.push_back(name);
  variable.chunks.append(points);
  if (find("latitude" + suffix) != nullptr) return points;
  for (const bool north : {true, false}) {
    FileVariable degrees;
    degrees.name = (north ? "latitude" : "longitude") + suffix;
    degrees.id = static_cast<int>(arrays_.size());
    degrees.bytes = size_of(degrees.type);
    degrees.dimensions = {name};
    degrees.shape = {points};
    degrees.texts = {{"units", north ? "degrees_north" : "degrees_east"},
                     {"standard_name", north ? "latitude" : "longitude"}};
    variables_.push_back(std::move(degrees));
    arrays_.push_back({north ? grid.latitudes : std::vector<double>(), {}, grid.in_row});
  }
  return points;
}

void GribFile::fill_degrees(const Array& array, std::int64_t begin, std::span<double> out) {
  std::int64_t row_begin = 0;
  std::size_t done = 0;
  for (std::size_t row = 0; row < array.in_row.size() && done < out.size(); ++row) {
    const std::int64_t count = array.in_row[row];
    for (std::int64_t i = std::max<std::int64_t>(begin - row_begin, 0); i < count && done < out.size(); ++i)
      out[done++] = array.values.empty() ? 360 * static_cast<double>(i) / static_cast<double>(count)
                                         : array.values[row];
    row_begin += count;
  }
}

std::string GribFile::dimension(const std::string& name, const std::vector<double>& values,
                                const std::map<std::string, std::string>& texts,
                                const std::vector<double>& bounds) {
  FileVariable coordinate;
  coordinate.name = name;
  coordinate.shape = {std::ssize(values)};
  coordinate.texts = texts;
  return add_coordinate(std::move(coordinate), values, bounds);
}

void GribFile::add_scalar(const std::string& name, double value,
                          const std::map<std::string, std::string>& texts) {
  FileVariable coordinate;
  coordinate.name = name;
  coordinate.texts = texts;
  add_coordinate(std::move(coordinate), {value}, {});
}

/// @param coordinate  without dimensions, and with the name that it has where no other one has it.
/// @param bounds      of each value two, or none.
std::string GribFile::add_coordinate(FileVariable coordinate, const std::vector<double>& values,
                                     const std::vector<double>& bounds) {
  const std::string name = coordinate.name;
  const auto values_of = [&](const FileVariable* of) {
    return of == nullptr ? std::vector<double>() : arrays_[static_cast<std::size_t>(of->id)].values;
  };
  for (int number = 2;; ++number) {
    if (!bounds.empty()) coordinate.texts["bounds"] = coordinate.name + "_bnds";
    const FileVariable* known = find(coordinate.name);
    if (known == nullptr) break;
    const bool same = values_of(known) == values && known->texts == coordinate.texts &&
                      arrays_[static_cast<std::size_t>(known->id)].in_row.empty();
    if (same && known->shape == coordinate.shape && values_of(find(known->text("bounds"))) == bounds)
      return known->name;
    coordinate.name = concat(name, "_", number);
  }
  std::string unique = coordinate.name;
  const auto add = [&](FileVariable variable, const std::vector<double>& numbers) {
    variable.id = static_cast<int>(arrays_.size());
    variable.bytes = size_of(variable.type);
    variables_.push_back(std::move(variable));
    arrays_.push_back({numbers, {}});
  };
  if (coordinate.shape.rank() > 0) coordinate.dimensions = {unique};
  const std::string limits_name = coordinate.text("bounds");
  add(std::move(coordinate), values);
  if (bounds.empty()) return unique;
  FileVariable limits;
  limits.name = limits_name;
  limits.dimensions = {unique, "bnds"};
  limits.shape = {std::ssize(values), 2};
  add(std::move(limits), bounds);
  return unique;
}

}  // namespace jigsaw::inline files
