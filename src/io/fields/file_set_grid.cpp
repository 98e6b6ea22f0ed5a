// Which rows and columns of each file are those of the grid.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "base/error.h"
#include "base/text.h"
#include "fields/file_set.h"

namespace jigsaw::inline fields {

namespace {

/// In place of the file that the grid is of.
constexpr const char* kNamedGrid = "data.regrid";

/// "90, 88.75, … to −90 (145)".
std::string describe_axis(const std::vector<double>& values) {
  std::string text = concat(values.size() > 1 ? concat(values[0], ", ", values[1]) : "");
  if (values.size() > 2) text += concat(" ... ", values.back());
  return values.size() == 1 ? concat(values[0]) : concat(text, " (", values.size(), ")");
}

/// 0, 1, …
std::vector<double> numbers_to(std::int64_t count) {
  std::vector<double> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0.0);
  return numbers;
}

/// Rows and columns by their numbers, all cells alike.
Grid make_projected_grid(std::vector<double> rows, std::vector<double> columns) {
  Grid grid = make_plain_grid({std::ssize(rows), std::ssize(columns)});
  grid.axes[0].name = "y";
  grid.axes[0].coordinates = std::move(rows);
  grid.axes[1].name = "x";
  grid.axes[1].coordinates = std::move(columns);
  return grid;
}

/// The two longitudes on either side of a gap of more than half a circle in those of a file that ascend or
/// descend, as of an area across Greenwich that is written from 0 to 15 and from 345 to 360; ascending.
/// Nothing where there is none.
std::optional<std::pair<double, double>> gap_of(const std::vector<double>& longitudes) {
  std::vector<double> ascending = longitudes;
  if (ascending.size() > 1 && ascending[0] > ascending[1]) std::ranges::reverse(ascending);
  std::size_t gaps = 0, behind = 0;
  for (std::size_t i = 1; i < ascending.size(); ++i) {
    const double step = ascending[i] - ascending[i - 1];
    if (!(step > 0)) return std::nullopt;
    if (step <= 180) continue;
    behind = i;
    ++gaps;
  }
  // Two points are in order either way round.
  const bool one_gap = gaps == 1 && ascending.size() > 2 && ascending.back() - ascending.front() <= 360;
  return one_gap ? std::optional(std::pair{ascending[behind - 1], ascending[behind]}) : std::nullopt;
}

/// data.region.longitude of the area around a gap, to less than coordinates may differ.
std::vector<double> longitudes_around(const std::pair<double, double>& gap) {
  const auto [east, west] = gap;  // ends of the area
  const auto rounded = [](double degrees) { return std::round(degrees * 1e4) / 1e4; };
  return {rounded(west > 180 ? west - 360 : west), rounded(east)};
}

}  // namespace

void FileSet::place_on_grid(Part& part, Regrid method) {
  const FieldAxes& axes = part.axes;
  const bool listed = axes.cells >= 0;
  AxesKey key{part.file, dimension(*part.variable, listed ? axes.cells : axes.latitude),
              listed ? "" : dimension(*part.variable, axes.longitude), "", method};
  if (method != Regrid::kNone && (listed || axes.projected)) {
    const FileVariable* const latitudes = use(part.file).places(*part.variable).first;
    if (latitudes != nullptr) std::get<3>(key) = latitudes->name;
  }
  Axes& known = axis_maps_[key];
  if (!known.rows && !known.source) {
    place(part, method);
    known = {part.rows, part.columns, part.source};
  }
  part.rows = known.rows;
  part.columns = known.columns;
  part.source = known.source;
}

void FileSet::place(Part& part, Regrid method) {
  DataFile& file = use(part.file);
  const bool projected = part.axes.projected, listed = part.axes.cells >= 0;
  const RegridOptions& regrid = selection_.regrid;
  if (grid_.axes.empty() && !regrid.latitude.empty())
    make_grid(equal_steps(regrid.latitude), equal_steps(regrid.longitude), false, kNamedGrid);
  const bool makes_grid = grid_.axes.empty();
  if (listed && (makes_grid || method == Regrid::kNone)) refuse_list(part, method);
  if (listed) return place_scattered(part, method);
  const auto points = [&](int axis) {
    return projected ? numbers_to(part.variable->shape[axis])
                     : file.coordinates(dimension(*part.variable, axis));
  };
  const std::vector<double> latitudes = points(part.axes.latitude), longitudes = points(part.axes.longitude);
  if (!projected) refuse_tile(part, latitudes, longitudes);
  if (makes_grid) make_grid(latitudes, longitudes, projected, file.file().path());
  const bool one_by_one = method == Regrid::kNearest || method == Regrid::kInverseDistance;
  if (projected && one_by_one && !makes_grid && !lies_on_projection(part, latitudes, longitudes))
    return place_scattered(part, method);
  map_axes(part, latitudes, longitudes, method);
  if (makes_grid && projected && selection_.like) turn_projection(part, latitudes, longitudes);
  if (projected) place_on_projection(part);
}

/// Rows and columns of a tile of FMS (FV3, GFDL's models), whose numbers have units of degrees.
void FileSet::refuse_tile(const Part& part, const std::vector<double>& latitudes,
                          const std::vector<double>& longitudes) {
  const std::string rows = without_groups(dimension(*part.variable, part.axes.latitude)),
                    columns = without_groups(dimension(*part.variable, part.axes.longitude));
  if (!rows.starts_with("grid_y") || !columns.starts_with("grid_x")) return;
  const auto are_numbers = [](const std::vector<double>& values) {
    for (std::size_t i = 0; i < values.size(); ++i)
      if (values[i] != static_cast<double>(i + 1)) return false;
    return values.size() > 1;
  };
  if (!are_numbers(latitudes) || !are_numbers(longitudes)) return;
  throw DataError(
      concat(part.variable->name, " in ", use(part.file).file().path(), " lies on rows 1 to ",
             latitudes.size(), " and columns 1 to ", longitudes.size(), " of a tile (", rows, ", ", columns,
             "), which are numbers and no degrees, whatever their units say; add the latitudes and "
             "longitudes of its points from the file of the grid (grid_lat, grid_lon) as variables "
             "along both, in degrees_north and degrees_east, and leave the variables ",
             rows, " and ", columns, " out, or remap it to latitudes and longitudes (fregrid)"));
}

void FileSet::refuse_list(const Part& part, Regrid method) {
  const std::string advice = method == Regrid::kNone
                                 ? "data.regrid brings them to some"
                                 : "data.regrid says to which it brings them by its latitude and longitude";
  const RegridOptions options = regrid_of(part);
  throw DataError(concat(part.variable->name, " in ", use(part.file).file().path(), " lies on a list of ",
                         part.variable->shape[part.axes.cells], " points, which are no rows and columns; ",
                         advice, options.latitude.empty() ? "" : ", as ",
                         options.latitude.empty() ? "" : to_text(options)));
}

/// Where the points of the grid are the file's own they are read; but where a grid is coarser than the file
/// means over its cells are no points.
void FileSet::map_axes(Part& part, const std::vector<double>& latitudes,
                       const std::vector<double>& longitudes, Regrid method) {
  const bool projected = part.axes.projected;
  if (places_ && !projected && method != Regrid::kNone && method != Regrid::kConservative)
    return place_between(part, latitudes, longitudes, method);
  auto rows = AxisMap::make(grid_.axes[0].coordinates, latitudes, false);
  auto columns = AxisMap::make(grid_.axes[1].coordinates, longitudes, !projected);
  const bool own =
      rows && columns && (method != Regrid::kConservative || (rows->consecutive() && columns->consecutive()));
  if (!own && method != Regrid::kNone && !projected && grid_.geographic) {
    if (method == Regrid::kInverseDistance) return place_between(part, latitudes, longitudes, method);
    const auto [down, along] = source_axes(part, latitudes, longitudes);
    auto weights_down = AxisWeights::make(grid_.axes[0], down, method);
    auto weights_along = AxisWeights::make(grid_.axes[1], along, method);
    rows = weights_down ? AxisMap::make(std::move(*weights_down), latitudes, false) : std::nullopt;
    columns = weights_along ? AxisMap::make(std::move(*weights_along), longitudes, true) : std::nullopt;
  }
  if (projected == grid_.geographic || !rows || !columns) refuse_grid(part, latitudes, longitudes, method);
  part.rows = std::make_shared<AxisMap>(*rows);
  part.columns = std::make_shared<AxisMap>(*columns);
}

/// Makes the grid of a projection with rows and columns in that order in which its corners are those of
/// FileSelection::like; in the file's where none is.
void FileSet::turn_projection(Part& part, const std::vector<double>& rows,
                              const std::vector<double>& columns) {
  if (selection_.like->corners.empty()) return;
  const std::string path = grid_file_;
  const auto make = [&](bool turn_rows, bool turn_columns) {
    std::vector<double> down = rows, along = columns;
    if (turn_rows) std::ranges::reverse(down);
    if (turn_columns) std::ranges::reverse(along);
    make_grid(down, along, true, path);
    map_axes(part, rows, columns, Regrid::kNone);
  };
  for (const auto& [turn_rows, turn_columns] :
       {std::pair{false, false}, std::pair{true, false}, std::pair{false, true}, std::pair{true, true}}) {
    make(turn_rows, turn_columns);
    if (alike_corners(corners_of(sample_places(part).second), selection_.like->corners)) return;
  }
  make(false, false);
}

void FileSet::take_grid(const FileSet& others) {
  grid_ = others.grid_;
  grid_file_ = others.grid_file_;
  sampled_places_ = others.sampled_places_;
}

void FileSet::refuse_gap(const std::vector<double>& longitudes, const std::string& path) {
  const std::optional<std::pair<double, double>> gap = gap_of(longitudes);
  if (!gap) return;
  throw DataError(concat("the longitudes of ", path, " have a gap between ", gap->first, " and ", gap->second,
                         "; data.region with \"longitude\": [", join(longitudes_around(*gap), ", "),
                         "] reads the area from west to east"));
}

std::optional<RegionOptions> FileSet::region_across_gap() {
  const std::lock_guard lock(mutex_);
  for (int f = 0; f < static_cast<int>(files_.size()); ++f) {
    DataFile& file = use(f);
    bool has_fields = false;
    for (const FileVariable& variable : file.file().variables()) {
      const FieldAxes axes = file.axes(variable);
      if (!variable.numeric() || axes.latitude < 0 || axes.longitude < 0 || axes.projected) continue;
      has_fields = true;
      try {
        if (const auto gap = gap_of(file.coordinates(dimension(variable, axes.longitude))))
          return RegionOptions{{}, longitudes_around(*gap)};
      } catch (const DataError&) {
        // Whoever selects the field hears why its longitudes cannot be read.
      }
    }
    if (has_fields) return std::nullopt;
  }
  return std::nullopt;
}

void FileSet::make_grid(const std::vector<double>& latitudes, const std::vector<double>& longitudes,
                        bool projected, const std::string& path) {
  const RegionOptions& region = selection_.region;
  if (projected && !(region == RegionOptions{})) {
    throw DataError(concat("data.region is of latitudes and longitudes, and the rows and columns of ", path,
                           " are those of a projection; cut it beforehand"));
  }
  if (!projected && region.longitude.empty()) refuse_gap(longitudes, path);
  const auto taken = [&](const std::vector<double>& all, std::size_t axis) {
    return every_of(all, axis < selection_.every.size() ? selection_.every[axis] : selection_.every[0]);
  };
  std::vector<double> rows = region.latitude.empty()
                                 ? latitudes
                                 : latitudes_within(latitudes, region.latitude[0], region.latitude[1]);
  std::vector<double> columns = region.longitude.empty()
                                    ? (projected ? longitudes : without_jumps(longitudes))
                                    : longitudes_within(longitudes, region.longitude[0], region.longitude[1]);
  if (selection_.like && selection_.like->corners.empty() && !projected) {
    rows = latitudes_like(std::move(rows), selection_.like->rows);
    columns = longitudes_like(std::move(columns), selection_.like->columns);
  }
  for (const auto& [all, of_file, name] :
       {std::tuple{&rows, &latitudes, "latitude"}, std::tuple{&columns, &longitudes, "longitude"}}) {
    if (!all->empty() || of_file->empty()) continue;
    const auto [least, most] = std::ranges::minmax(*of_file);
    throw DataError(concat(path, " has no point in data.region.", name, "; its ", name, "s go from ", least,
                           " to ", most));
  }
  try {
    grid_ = projected ? make_projected_grid(taken(rows, 0), taken(columns, 1))
                      : make_geographic_grid(taken(rows, 0), taken(columns, 1));
  } catch (const DataError& error) {
    throw DataError(concat(path, ": ", error.what()));
  }
  grid_file_ = path;
}

/// "; both have points in data.region {…}": of the grid's points those between the ends of other axes, where
/// they follow one another (of longitudes also over the end of the circle); "" elsewhere.
std::string FileSet::both_have(const std::vector<double>& latitudes,
                               const std::vector<double>& longitudes) const {
  const auto ends_within = [&](std::size_t axis,
                               const std::vector<double>& there) -> std::optional<std::pair<double, double>> {
    std::vector<double> unwrapped = there;  // over the end of the circle
    for (std::size_t i = 1; axis == 1 && i < there.size(); ++i)
      unwrapped[i] -= 360 * std::round((unwrapped[i] - unwrapped[i - 1]) / 360);
    const double low = std::ranges::min(unwrapped), high = std::ranges::max(unwrapped);
    const std::vector<double>& points = grid_.axes[axis].coordinates;
    const auto within = [&](std::size_t i) {
      const double turns = axis == 1 ? 360 * std::ceil((low - points[i]) / 360) : 0;
      return points[i] + turns >= low && points[i] + turns <= high;
    };
    const std::size_t count = points.size();
    std::vector<std::size_t> begins;
    for (std::size_t i = 0; i < count; ++i) {
      const bool circular = axis == 1 && grid_.periodic;
      if (within(i) && !(i > 0 ? within(i - 1) : circular && within(count - 1))) begins.push_back(i);
    }
    if (begins.empty() && within(0)) return std::pair{points.front(), points.back()};
    if (begins.size() != 1) return std::nullopt;
    std::size_t end = begins[0];
    while (within((end + 1) % count) && (end + 1 < count || (axis == 1 && grid_.periodic)))
      end = (end + 1) % count;
    return std::pair{points[begins[0]], points[end]};
  };
  const auto rows = ends_within(0, latitudes), columns = ends_within(1, longitudes);
  if (!rows || !columns) return "";
  const auto [south, north] = std::minmax(rows->first, rows->second);
  return concat("; both have points in data.region {\"latitude\": [", south, ", ", north,
                "], \"longitude\": [", columns->first, ", ", columns->second, "]}");
}

void FileSet::refuse_grid(const Part& part, const std::vector<double>& latitudes,
                          const std::vector<double>& longitudes, Regrid method) {
  // Of a projection there are numbers of rows and columns alone.
  const bool degrees = !part.axes.projected && grid_.geographic;
  std::string differs;
  const auto compare = [&](const char* axis, const std::vector<double>& here, std::size_t dim,
                           const auto& source) {
    const std::vector<double>& there = grid_.axes[dim].coordinates;
    if (!degrees || AxisMap::make(there, here, dim == 1)) return;
    if (method != Regrid::kNone && AxisWeights::make(grid_.axes[dim], source(here), method)) return;
    differs +=
        concat("; its ", axis, " are ", describe_axis(here), ", those of the other ", describe_axis(there));
  };
  compare("latitudes", latitudes, 0, SourceAxis::latitude);
  compare("longitudes", longitudes, 1, SourceAxis::longitude);
  const bool named = grid_file_ == kNamedGrid;
  std::string hint;
  if (method == Regrid::kNone && degrees) {
    hint = "; data.regrid with \"method\": \"linear\" or \"conservative\" brings it to that grid";
  } else if (method != Regrid::kNone) {
    const bool at_points = method != Regrid::kConservative && !grid_.geographic && !part.axes.projected;
    hint = degrees     ? concat(", to which data.regrid can bring it only where it has values",
                                both_have(latitudes, longitudes))
           : at_points ? "; a climatology has to lie on the projection of the data"
           : part.axes.projected
               ? "; from a projection data.regrid brings fields by \"nearest\" or \"inverse_distance\""
               : "; to a projection data.regrid brings fields by \"linear\", \"nearest\" or "
                 "\"inverse_distance\"";
  } else {
    hint = "; data.regrid with \"method\": \"inverse_distance\" or \"nearest\" brings it to that grid";
  }
  throw DataError(concat(
      part.variable->name, " in ", use(part.file).file().path(), " lies on another grid (", latitudes.size(),
      " x ", longitudes.size(), ") than ", named ? "that of " : "the fields of ", grid_file_, " (",
      grid_.axes[0].coordinates.size(), " x ", grid_.axes[1].coordinates.size(), ")", differs, hint));
}

}  // namespace jigsaw::inline fields
