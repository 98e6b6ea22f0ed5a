// Latitudes and longitudes of the points of a projection, or of another grid whose points have their own.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/error.h"
#include "base/text.h"
#include "fields/file_set.h"
#include "grids/degrees.h"
#include "grids/nearest_points.h"

namespace jigsaw::inline fields {

namespace {

/// The same longitude within half a circle of another.
double around(double degrees, double middle) {
  const double offset = degrees - middle;
  return middle + offset - 360 * std::round(offset / 360);
}

/// Mean and deviation of latitudes and of longitudes, the latter counted around one of them, `middle`.
void standardise(const std::array<std::vector<double>, 2>& samples, double& middle,
                 std::array<double, 2>& mean, std::array<double, 2>& deviation) {
  std::array<std::vector<double>, 2> there = samples;
  for (std::vector<double>& degrees : there) {
    std::erase_if(degrees, [](double value) { return std::isnan(value); });
    if (degrees.empty()) degrees.push_back(0);
  }
  middle = there[1][there[1].size() / 2];
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const auto n = static_cast<double>(there[axis].size());
    double squares = 0;
    const auto value = [&](double degrees) { return axis == 1 ? around(degrees, middle) : degrees; };
    for (const double degrees : there[axis]) mean[axis] += value(degrees) / n;
    for (const double degrees : there[axis]) squares += std::pow(value(degrees) - mean[axis], 2) / n;
    deviation[axis] = squares > 0 ? std::sqrt(squares) : 1;
  }
}

}  // namespace

/// Where the points of a projection lie in the file of a field, and the degrees of some of them.
std::pair<FileSet::Places, FileSet::SampledPlaces> FileSet::sample_places(const Part& part) {
  DataFile& file = use(part.file);
  const auto [latitudes, longitudes] = file.places(*part.variable);
  Places places;
  for (const auto& [axis, variable] : {std::pair{0, latitudes}, std::pair{1, longitudes}}) {
    Part& here = places.parts[static_cast<std::size_t>(axis)];
    const int rank = variable->shape.rank();
    here = Part();
    here.file = part.file;
    here.variable = variable;
    here.rows = part.rows;
    here.columns = part.columns;
    here.axes.latitude = rank - 2;
    here.axes.longitude = rank - 1;
    if (rank == 3) here.axes.time = 0;
  }
  SampledPlaces samples = sample_degrees(places.parts);
  return {std::move(places), std::move(samples)};
}

/// As Grid::corners.
std::vector<double> FileSet::corners_of(const SampledPlaces& samples) {
  std::vector<double> corners;
  const std::size_t columns = samples[0].size() / 3;  // of the first, middle and last row
  for (const std::size_t at : {std::size_t{0}, columns - 1, 2 * columns, 3 * columns - 1}) {
    corners.push_back(samples[0][at]);
    corners.push_back(samples[1][at]);
  }
  return corners;
}

/// Whether latitudes (0) or longitudes (1) are others than those of the grid; nothing where they are the
/// same.
std::optional<std::size_t> FileSet::other_places(const SampledPlaces& found) const {
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const std::vector<double>& known = (*sampled_places_)[axis];
    const bool equal = std::ranges::equal(found[axis], known, [](double a, double b) {
      if (std::isnan(a) || std::isnan(b)) return std::isnan(a) == std::isnan(b);
      return std::abs(around(a - b, 0)) < 1e-3;
    });
    if (!equal) return axis;
  }
  return std::nullopt;
}

/// Whether a field on a projection lies at the points of the grid.
bool FileSet::lies_on_projection(const Part& part, const std::vector<double>& rows,
                                 const std::vector<double>& columns) {
  if (grid_.geographic || !sampled_places_) return false;
  Part here = part;
  const auto down = AxisMap::make(grid_.axes[0].coordinates, rows, false),
             along = AxisMap::make(grid_.axes[1].coordinates, columns, false);
  if (!down || !along) return false;
  here.rows = std::make_shared<AxisMap>(*down);
  here.columns = std::make_shared<AxisMap>(*along);
  return !other_places(sample_places(here).second);
}

/// The latitudes and longitudes of the points must be those of the first file, or of the grid that was taken.
void FileSet::place_on_projection(const Part& part) {
  auto [places, samples] = sample_places(part);
  if (!sampled_places_) sampled_places_ = samples;
  if (grid_.corners.empty()) grid_.corners = corners_of(samples);
  if (const auto axis = other_places(samples)) {
    throw DataError(concat(part.variable->name, " in ", use(part.file).file().path(), " lies at other ",
                           *axis == 0 ? "latitudes" : "longitudes", " than the fields of ", grid_file_,
                           "; data.regrid with \"nearest\" or \"inverse_distance\" brings it to theirs"));
  }
  if (places_) return;
  standardise(samples, places.middle, places.mean, places.deviation);
  places_ = std::move(places);
}

/// Of a grid with latitudes and longitudes along its axes, as sample_places() has them.
FileSet::SampledPlaces FileSet::sample_grid() const {
  SampledPlaces samples;
  const std::vector<double>&rows = grid_.axes[0].coordinates, &columns = grid_.axes[1].coordinates;
  for (const std::size_t row : {std::size_t{0}, rows.size() / 2, rows.size() - 1}) {
    samples[0].insert(samples[0].end(), columns.size(), rows[row]);
    samples[1].insert(samples[1].end(), columns.begin(), columns.end());
  }
  return samples;
}

/// How far the places that a field names in its `coordinates` are from those of the grid's points, in
/// degrees, as far as three rows show; 0 where it names none.
double FileSet::distance_from_grid(const Part& part) {
  const auto [latitudes, longitudes] = use(part.file).places(*part.variable);
  const std::vector dimensions = {dimension(*part.variable, part.axes.latitude),
                                  dimension(*part.variable, part.axes.longitude)};
  for (const FileVariable* const degrees : {latitudes, longitudes}) {
    if (degrees == nullptr || !names_coordinate(*part.variable, *degrees)) return 0;
    if (degrees->dimensions != dimensions) return 0;
  }
  const SampledPlaces here = sample_places(part).second,
                      there = grid_.geographic ? sample_grid() : sampled_places_.value();
  double furthest = 0;
  for (std::size_t i = 0; i < here[0].size(); ++i) {
    for (const double difference : {here[0][i] - there[0][i], around(here[1][i] - there[1][i], 0)})
      furthest = std::fmax(furthest, std::abs(difference));  // of a point without a place: no number
  }
  return furthest;
}

std::vector<std::string> FileSet::fields_elsewhere() {
  constexpr double kSame = 1e-2;  // degrees, to which coordinates are packed at times
  const std::lock_guard lock(mutex_);
  struct Pair {
    double distance;
    std::string text;
    std::vector<std::string> fields;
  };
  std::map<std::tuple<int, std::string, std::string>, Pair> pairs;  // by file and what fields name in it
  for (const auto& [field, series] : series_) {
    if (series.absent || series.parts.empty() || !series.parts.front().axes.horizontal()) continue;
    const Part& part = series.parts.front();
    if (part.regridded()) continue;
    try {
      const auto [latitudes, longitudes] = use(part.file).places(*part.variable);
      if (latitudes == nullptr || longitudes == nullptr) continue;
      const auto [pair, is_new] =
          pairs.try_emplace({part.file, part.variable->text("coordinates"), latitudes->name});
      if (is_new) {
        pair->second.distance = distance_from_grid(part);
        pair->second.text = concat(latitudes->name, " and ", longitudes->name);
      }
      pair->second.fields.push_back(field.name());
    } catch (const DataError&) {
      // Places that cannot be read say nothing.
    }
  }
  const std::string taken =
      grid_.geographic ? "latitudes and longitudes along their axes"
      : places_        ? concat(places_->parts[0].variable->name, " and ", places_->parts[1].variable->name)
                       : "";
  std::vector<std::string> sentences;
  for (const auto& [key, pair] : pairs) {
    if (pair.distance < kSame) continue;
    sentences.push_back(concat(pair.text, ", the coordinates of ",
                               first_and_more(pair.fields.front(), std::ssize(pair.fields) - 1, "field"),
                               ", are up to ", std::round(pair.distance * 100) / 100, "° from ", taken,
                               ", at which all fields are taken to lie, by forcings of place, weights, "
                               "regions and in forecasts"));
  }
  return sentences;
}

/// Degrees of the first, middle and last row.
FileSet::SampledPlaces FileSet::sample_degrees(const std::array<Part, 2>& parts) {
  const Shape extents = grid_.shape();
  SampledPlaces samples;
  for (const std::int64_t y : {std::int64_t{0}, extents[0] / 2, extents[0] - 1}) {
    const PointPlaces row = degrees_at(parts, {{y, 0}, {1, extents[1]}});
    samples[0].insert(samples[0].end(), row.latitude.begin(), row.latitude.end());
    samples[1].insert(samples[1].end(), row.longitude.begin(), row.longitude.end());
  }
  return samples;
}

/// NaN where a point has no place.
PointPlaces FileSet::degrees_at(const std::array<Part, 2>& parts, const Box& box) {
  const auto points = static_cast<std::size_t>(box.extent.count());
  PointPlaces places{std::vector<double>(points), std::vector<double>(points)};
  read_part<double>(parts[0], 0, 0, box, places.latitude);
  read_part<double>(parts[1], 0, 0, box, places.longitude);
  forget_zeros(parts[0].file, {parts[0].variable, parts[1].variable}, places.latitude, places.longitude);
  return places;
}

/// Takes latitude and longitude 0 for no place where several points of a file have them, as NEMO leaves parts
/// of its grid that are all land and not computed.
void FileSet::forget_zeros(int file, const PlaceVariables& variables, std::span<double> latitudes,
                           std::span<double> longitudes) {
  const auto is_zero = [&](std::size_t i) { return latitudes[i] == 0 && longitudes[i] == 0; };
  bool known = false;
  for (std::size_t i = 0; i < latitudes.size(); ++i) {
    if (!is_zero(i)) continue;
    if (!known && !has_zeros(file, variables)) return;
    known = true;
    latitudes[i] = longitudes[i] = std::nan("");
  }
}

/// Whether more points of a file have latitude and longitude 0 than columns at its ends may repeat one. Read
/// at most once, and only where such a point is found.
bool FileSet::has_zeros(int file, const PlaceVariables& variables) {
  constexpr std::int64_t kAtOnce = std::int64_t{1} << 20;
  constexpr int kRepeated = 2;
  const std::lock_guard lock(zeros_mutex_);
  const auto [latitudes, longitudes] = variables;
  const std::pair key{file, latitudes->name};
  if (const auto known = zeros_.find(key); known != zeros_.end()) return known->second;
  Pin pin(*this, file);
  const Shape& shape = latitudes->shape;
  const int rows = shape.rank() > 1 ? shape.rank() - 2 : 0;
  Box slab{Shape::filled(shape.rank(), 0), Shape::filled(shape.rank(), 1)};
  if (shape.rank() > 1) slab.extent[rows + 1] = shape.back();
  const std::int64_t most = std::max<std::int64_t>(kAtOnce / slab.extent.count(), 1);
  int found = 0;
  std::vector<double> north, east;
  for (std::int64_t row = 0; row < shape[rows] && found <= kRepeated; row += most) {
    slab.begin[rows] = row;
    slab.extent[rows] = std::min(most, shape[rows] - row);
    north.resize(static_cast<std::size_t>(slab.extent.count()));
    east.resize(north.size());
    pin.file().file().read<double>(*latitudes, slab, std::span(north));
    pin.file().file().read<double>(*longitudes, slab, std::span(east));
    for (std::size_t i = 0; i < north.size(); ++i) found += north[i] == 0 && east[i] == 0 ? 1 : 0;
  }
  return zeros_[key] = found > kRepeated;
}

FileSet::GoesRound FileSet::goes_round() const {
  if (!sampled_places_) return {};
  const std::vector<double>&latitudes = (*sampled_places_)[0], &longitudes = (*sampled_places_)[1];
  const std::size_t count = latitudes.size() / 3;  // of the first, middle and last row
  if (count < 3) return {};
  const auto chord = [&](std::size_t one, std::size_t other) {
    return chord_between(unit_vector(latitudes[one], longitudes[one]),
                         unit_vector(latitudes[other], longitudes[other]));
  };
  // Ends lie beside each other where they are about as far apart as the points there; where one of these has
  // no place the row says nothing.
  int closed = 0, open = 0;
  for (std::size_t row = 0; row < 3; ++row) {
    const std::size_t first = row * count, last = first + count - 1;
    const double apart = chord(first, last), step = std::max(chord(first, first + 1), chord(last - 1, last));
    if (std::isnan(apart) || std::isnan(step)) continue;
    ++(apart <= 2 * step ? closed : open);
  }
  bool same_rows = true;
  for (std::size_t column = 0; column + 1 < count; ++column) {
    const double apart = chord(column, 2 * count + column), step = chord(column, column + 1);
    if (apart > 2 * step) same_rows = false;
  }
  const std::int64_t repeated = repeated_columns();
  return {same_rows, repeated == 0 && (open == 0 || closed > open), repeated};
}

/// GoesRound::repeated.
std::int64_t FileSet::repeated_columns() const {
  constexpr std::int64_t kMost = 4;
  const std::vector<double>&latitudes = (*sampled_places_)[0], &longitudes = (*sampled_places_)[1];
  const std::int64_t count = std::ssize(latitudes) / 3;
  const auto repeats = [&](std::int64_t columns) {
    bool compared = false;
    for (std::int64_t i = 0; i < 3 * columns; ++i) {
      const auto first = static_cast<std::size_t>(i / columns * count + i % columns),
                 other = first + static_cast<std::size_t>(count - columns);
      const double north = latitudes[first] - latitudes[other],
                   east = around(longitudes[first] - longitudes[other], 0);
      if (std::isnan(north) || std::isnan(east)) continue;
      if (std::abs(north) > kSameDegrees || std::abs(east) > kSameDegrees) return false;
      compared = true;
    }
    return compared;
  };
  for (std::int64_t columns = 1; columns <= std::min(kMost, count / 3); ++columns)
    if (repeats(columns)) return columns;
  return 0;
}

void FileSet::read_places(Forcing forcing, const Box& box, std::span<double> out) {
  require(places_.has_value(), "the grid has coordinates along its axes");
  const std::size_t axis = forcing == Forcing::kLatitude ? 0 : 1;
  read_part<double>(places_->parts[axis], 0, 0, box, out);
  if (std::ranges::find(out, 0.0) != out.end()) {
    const PointPlaces places = read_degrees(box);
    std::ranges::copy(axis == 0 ? places.latitude : places.longitude, out.begin());
  }
  require_everywhere(axis, box, out);
  for (double& degrees : out) {
    if (axis == 1) degrees = around(degrees, places_->middle);
    degrees = (degrees - places_->mean[axis]) / places_->deviation[axis];
  }
}

PointPlaces FileSet::read_degrees(const Box& box) {
  require(places_.has_value(), "the grid has coordinates along its axes");
  return degrees_at(places_->parts, box);
}

PointPlaces FileSet::read_forcing_degrees(const Box& box) {
  PointPlaces places = read_degrees(box);
  require_everywhere(0, box, places.latitude);
  require_everywhere(1, box, places.longitude);
  return places;
}

/// A forcing that is missing somewhere makes every prediction NaN.
void FileSet::require_everywhere(std::size_t axis, const Box& box, std::span<const double> degrees) {
  const auto missing = std::ranges::find_if(degrees, [](double value) { return std::isnan(value); });
  if (missing == degrees.end()) return;
  const std::int64_t point = missing - degrees.begin(), width = box.extent[1];
  const Part& part = places_->parts[axis];
  // Coordinates of the grid are numbers of rows and columns of the file.
  const auto number = [&](std::size_t of, std::int64_t i) {
    return grid_.axes[of].coordinates[static_cast<std::size_t>(i)];
  };
  const bool shared = [&] {
    const std::lock_guard lock(zeros_mutex_);
    const auto known = zeros_.find({part.file, places_->parts[0].variable->name});
    return known != zeros_.end() && known->second;
  }();
  throw DataError(
      concat(part.variable->name, " in ", use(part.file).file().path(), " is missing at row ",
             number(0, box.begin[0] + point / width), ", column ", number(1, box.begin[1] + point % width),
             shared ? " (latitude and longitude 0, which several points have, are no place)" : "",
             "; forcings of place need a number at every point: leave those out of data.forcings, "
             "or fill latitudes and longitudes in the file"));
}

}  // namespace jigsaw::inline fields
