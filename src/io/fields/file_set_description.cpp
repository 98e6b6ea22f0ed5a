// What the files say of fields and of the points of the grid, for files that are written.
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "fields/file_set.h"
#include "files/field_attributes.h"
#include "files/value_kinds.h"
#include "grids/degrees.h"

namespace jigsaw::inline fields {

namespace {

/// Of a region, or of a grid that runs the other way than in the file, the limits of cells are left out.
CoordinateDescription on_grid(CoordinateDescription coordinate, std::vector<double> values) {
  if (coordinate.values == values) return coordinate;
  coordinate.values = std::move(values);
  coordinate.bounds_name.clear();
  coordinate.bounds.clear();
  return coordinate;
}

/// Differences of running sums are sums over steps, which files need not say of them.
void say_sum(std::map<std::string, std::string>& texts) {
  std::string& methods = texts["cell_methods"];
  if (method_along(methods, "time").empty()) methods += concat(methods.empty() ? "" : " ", "time: sum");
}

/// The values of a file's axis at the points of the grid.
std::vector<double> values_at(const AxisMap& points, const std::vector<double>& of_file, std::int64_t count) {
  std::vector<double> values;
  for (const AxisRun& run : points.runs(0, count)) {
    for (std::int64_t i = 0; i < run.count; ++i)
      values.push_back(of_file[static_cast<std::size_t>(run.first + i * run.step)]);
  }
  return values;
}

/// Longitudes of a file where these jump, as across its seam, counted without jumps as the grid counts them,
/// from a western end in [-180, 180) on; what needs no turn keeps the file's own value.
void remove_jumps(std::vector<double>& values, const std::vector<double>& of_grid) {
  const auto jumps = [](double a, double b) { return std::abs(b - a) > kCircle / 2; };
  if (std::ranges::adjacent_find(values, jumps) == values.end()) return;
  const double west = std::min(of_grid.front(), of_grid.back());
  const double shift = -kCircle * std::floor((west + kCircle / 2) / kCircle);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] += kCircle * std::round((of_grid[i] + shift - values[i]) / kCircle);
}

}  // namespace

FileSet::Regridded FileSet::regridded(const Field& field) const {
  Regridded found;
  for (const Part& part : series(field).parts) {
    ++found.of;
    if (!part.regridded()) continue;
    if (++found.files == 1) found.path = files_[static_cast<std::size_t>(part.file)]->file().path();
  }
  return found;
}

bool FileSet::is_regridded(const Field& field) const {
  return std::ranges::any_of(series(field).parts, [](const Part& part) { return part.regridded(); });
}

std::optional<double> FileSet::height_of(const Field& field) {
  const Series& source = series(field);
  if (field.level || source.absent) return std::nullopt;
  const Part& part = source.parts.front();
  const std::lock_guard lock(mutex_);
  Pin pin(*this, part.file);
  return pin.file().height_of(*part.variable);
}

FieldDescription FileSet::describe(const Field& field) {
  const Series& source = series(field);
  const Part& part = source.parts.front();
  const std::lock_guard lock(mutex_);
  Pin pin(*this, part.file);
  DataFile& file = pin.file();
  FieldDescription result;
  if (source.absent && !source.units.empty()) result.texts["units"] = source.units;
  for (const auto& [attribute, text] : part.variable->texts) {
    if (!source.absent && !text.empty() && is_of_field(attribute)) result.texts[attribute] = text;
  }
  for (const auto& [attribute, numbers] : part.variable->numbers) {
    if (!source.absent && is_of_field(attribute)) result.numbers[attribute] = numbers;
  }
  if (source.summed) say_sum(result.texts);
  const Part& on_grid = grid_part(part);
  Pin grid_pin(*this, on_grid.file);
  result.rows = describe_coordinates(on_grid, grid_pin.file(), 0);
  result.columns = describe_coordinates(on_grid, grid_pin.file(), 1);
  if (field.level && part.axes.level >= 0 && !source.absent) {
    result.level = file.describe(dimension(*part.variable, part.axes.level));
    result.level_position = part.level;
  } else if (const FileVariable* scalar = source.absent ? nullptr : file.scalar_level(*part.variable);
             field.level && scalar != nullptr) {
    result.level = file.describe_scalar(*scalar);
  } else if (field.level) {  // a channel, whose name has the level, or a field that the files lack
    CoordinateDescription& level = result.level.emplace();
    level.name = "level";
    if (!source.absent) level.texts["long_name"] = "level in the names of channels";
    for (const auto& [other, of_other] : series_) {
      if (other.variable != field.variable || !other.level) continue;
      if (other == field) result.level_position = std::ssize(level.values);
      level.values.push_back(*other.level);
    }
  }
  if (!source.absent) {
    const FileVariable* const level = field.level ? file.scalar_level(*part.variable) : nullptr;
    result.scalars = file.scalars_of(*part.variable, level);
    // A dimension of one level that goes without saying is none of what is written.
    if (!field.level && part.axes.level >= 0 && part.variable->shape[part.axes.level] == 1) {
      CoordinateDescription one = file.describe(dimension(*part.variable, part.axes.level));
      if (one.values.size() == 1) result.scalars.push_back(std::move(one));
    }
  }
  return result;
}

/// One that says how the grid lies: of what is brought to it point by point another field that is on it.
const FileSet::Part& FileSet::grid_part(const Part& part) const {
  if (!part.source) return part;
  for (const auto& [field, series] : series_)
    for (const Part& other : series.parts)
      if (other.axes.horizontal() && !other.source) return other;
  return part;
}

/// The file's own values of the points of the grid, but for longitudes that jump. The grid has the rows and
/// columns of a projection by their numbers.
CoordinateDescription FileSet::describe_coordinates(const Part& part, DataFile& file,
                                                    std::size_t axis) const {
  const std::vector<double>& of_grid = grid_.axes[axis].coordinates;
  if (part.source && grid_.geographic) {
    const std::string name = grid_.axes[axis].name;
    return {name, {{"units", grid_.axes[axis].units}, {"standard_name", name}}, false, of_grid, "", {}};
  }
  const int d = axis == 0 ? part.axes.latitude : part.axes.longitude;
  const std::string& name = dimension(*part.variable, d);
  CoordinateDescription coordinate = file.describe(name);
  if (coordinate.values.empty()) return coordinate;
  if (std::ssize(coordinate.values) != part.variable->shape[d]) {
    throw DataError(concat("the coordinate ", name, " of ", file.file().path(), " has ",
                           coordinate.values.size(), " values, and ", part.variable->name, " ",
                           part.variable->shape[d], " along it"));
  }
  const AxisMap& points = axis == 0 ? *part.rows : *part.columns;
  if (part.regridded()) return on_grid(std::move(coordinate), of_grid);
  std::vector<double> values = values_at(points, coordinate.values, std::ssize(of_grid));
  if (grid_.geographic && axis == 1) remove_jumps(values, of_grid);
  return on_grid(std::move(coordinate), std::move(values));
}

PointsDescription FileSet::describe_points(const Field& field) {
  require(places_.has_value(), "the grid has coordinates along its axes");
  const Part& part = grid_part(series(field).parts.front());
  PointsDescription result{DataFile::describe(*places_->parts[0].variable),
                           DataFile::describe(*places_->parts[1].variable), nullptr};
  // Some are known by their names alone.
  result.latitude.texts.insert({{"units", "degrees_north"}, {"standard_name", "latitude"}});
  result.longitude.texts.insert({{"units", "degrees_east"}, {"standard_name", "longitude"}});
  result.mapping = files_[static_cast<std::size_t>(part.file)]->file().grid_mapping(*part.variable);
  return result;
}

}  // namespace jigsaw::inline fields
