// Files whose points are brought to those of the grid one by one: to and from projections, and from lists.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "base/error.h"
#include "base/printable.h"
#include "base/text.h"
#include "fields/file_set.h"
#include "files/coordinate_units.h"
#include "grids/degrees.h"

namespace jigsaw::inline fields {

namespace {

std::shared_ptr<const AxisMap> all_of(std::int64_t count) {
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<double>(i));
  return std::make_shared<AxisMap>(*AxisMap::make(numbers, numbers, false));
}

/// Of those that divide 180 degrees the nearest one, by its ratio.
double round_step(double degrees) {
  double best = 10;
  for (const double step :
       {7.5, 5.0, 3.0, 2.5, 2.0, 1.5, 1.0, 0.75, 0.5, 0.25, 0.2, 0.125, 0.1, 0.0625, 0.05, 0.025})
    if (std::abs(std::log(step / degrees)) < std::abs(std::log(best / degrees))) best = step;
  return best;
}

/// Rows and columns of round numbers about as far apart as points, around the globe or within their area.
RegridOptions grid_for(std::vector<double> latitudes, std::vector<double> longitudes) {
  const auto rows = RowPoints::find(latitudes, longitudes);
  std::erase_if(latitudes, [](double value) { return std::isnan(value); });
  std::erase_if(longitudes, [](double value) { return std::isnan(value); });
  if (latitudes.empty() || longitudes.empty()) return {};
  const auto [south, north] = std::ranges::minmax(latitudes);
  for (double& degrees : longitudes) degrees = on_circle(degrees);
  std::ranges::sort(longitudes);
  double west = longitudes.front(), gap = west + kCircle - longitudes.back();
  for (std::size_t i = 1; i < longitudes.size(); ++i) {
    if (longitudes[i] - longitudes[i - 1] <= gap) continue;
    gap = longitudes[i] - longitudes[i - 1];
    west = longitudes[i];
  }
  constexpr double kRadians = std::numbers::pi / 180;
  const double area = (kCircle - gap) * (std::sin(north * kRadians) - std::sin(south * kRadians)) / kRadians;
  const bool global = rows && rows->round_the_globe();
  const double apart = rows ? (north - south) / static_cast<double>(rows->rows() - 1)
                            : std::sqrt(area / static_cast<double>(latitudes.size()));
  const double step = round_step(std::max(apart, 1e-3));
  RegridOptions options;
  options.method = global ? Regrid::kLinear : Regrid::kInverseDistance;
  if (gap < 3 * step && north > 90 - 2 * step && south < 2 * step - 90) {
    options.latitude = {90, -90, step};
    options.longitude = {0, kCircle - step, step};
  } else if (gap < 3 * step) {
    options.latitude = {std::floor(north / step) * step, std::ceil(south / step) * step, step};
    options.longitude = {0, kCircle - step, step};
  } else {
    const double east = west + kCircle - gap, turn = east > kCircle ? kCircle : 0.0;
    options.latitude = {std::floor(north / step) * step, std::ceil(south / step) * step, step};
    options.longitude = {std::ceil((west - turn) / step) * step, std::floor((east - turn) / step) * step,
                         step};
  }
  const auto is_axis = [](const std::vector<double>& axis) {
    return std::abs(axis[1] - axis[0]) > axis[2] / 2;
  };
  return is_axis(options.latitude) && is_axis(options.longitude) ? options : RegridOptions{};
}

/// First, middle and last rows, or runs of a list, of which files of the same points are known.
std::vector<Box> samples_of(const Shape& plane) {
  constexpr std::int64_t kRun = 256;
  const std::int64_t count = plane[0] > 1 ? plane[1] : std::min(plane[1], kRun);
  std::vector<Box> samples;
  for (const int i : {0, 1, 2}) {
    samples.push_back({{(plane[0] - 1) * i / 2, (plane[1] - count) * i / 2}, {1, count}});
    if (plane.count() == count) break;
  }
  return samples;
}

}  // namespace

bool FileSet::has_lists() {
  const std::lock_guard lock(mutex_);
  for (int f = 0; f < static_cast<int>(files_.size()); ++f) {
    const DataFile& file = use(f);
    for (const FileVariable& variable : file.file().variables())
      if (variable.numeric() && file.axes(variable).cells >= 0) return true;
  }
  return false;
}

/// For a field on a list of points.
RegridOptions FileSet::regrid_of(const Part& part) {
  ListedPlaces places = places_of(part, Box::whole(part.axes.plane_of(part.variable->shape)));
  return grid_for(std::move(places.latitudes), std::move(places.longitudes));
}

std::optional<RegridOptions> FileSet::regrid_of_list() {
  const std::lock_guard lock(mutex_);
  std::optional<Part> list;
  for (int f = 0; f < static_cast<int>(files_.size()); ++f) {
    DataFile& file = use(f);
    for (const FileVariable& variable : file.file().variables()) {
      const FieldAxes axes = file.axes(variable);
      if (!variable.numeric() || !axes.horizontal()) continue;
      if (axes.cells < 0) return std::nullopt;
      if (list) continue;
      list = Part();
      list->file = f;
      list->variable = &variable;
      list->axes = axes;
    }
  }
  if (!list) return std::nullopt;
  RegridOptions options = regrid_of(*list);
  if (options.latitude.empty()) return std::nullopt;
  return options;
}

std::pair<SourceAxis, SourceAxis> FileSet::source_axes(const Part& part, const std::vector<double>& latitudes,
                                                       const std::vector<double>& longitudes) {
  try {
    return {SourceAxis::latitude(latitudes), SourceAxis::longitude(longitudes)};
  } catch (const DataError& error) {
    throw DataError(concat(part.variable->name, " in ", use(part.file).file().path(), ": ", error.what()));
  }
}

/// Files of the same points share what is made of them, and are not read for it again.
void FileSet::share(Part& part, Regrid method, std::vector<double> known_by,
                    const std::function<std::shared_ptr<const SourcePoints>()>& make) {
  const auto same = [&](const std::shared_ptr<const Source>& known) {
    return known->method == method && std::ranges::equal(known->known_by, known_by, [](double a, double b) {
             return a == b || (std::isnan(a) && std::isnan(b));
           });
  };
  const auto found = std::ranges::find_if(sources_, same);
  if (found != sources_.end()) {
    part.source = *found;
    return;
  }
  auto source = std::make_shared<const Source>(Source{make(), method, std::move(known_by)});
  if (source->points->must_reach()) {
    const TargetPoints targets = sampled_targets(method);
    require_reach(part, source->points->weights(targets, method), targets);
  }
  sources_.push_back(source);
  part.source = source;
}

/// A field on latitudes and longitudes, between whose rows and columns points of the grid lie.
void FileSet::place_between(Part& part, const std::vector<double>& latitudes,
                            const std::vector<double>& longitudes, Regrid method) {
  std::vector<double> known_by = latitudes;
  known_by.insert(known_by.end(), longitudes.begin(), longitudes.end());
  if (method == Regrid::kInverseDistance) {
    part.rows = all_of(std::ssize(latitudes));
    part.columns = all_of(std::ssize(longitudes));
    return share(part, method, std::move(known_by), [&] {
      std::vector<double> down, along;
      for (const double latitude : latitudes) {
        down.insert(down.end(), longitudes.size(), latitude);
        along.insert(along.end(), longitudes.begin(), longitudes.end());
      }
      return std::make_shared<const ScatteredPoints>(std::move(down), std::move(along),
                                                     std::ssize(longitudes));
    });
  }
  const auto [rows, columns] = source_axes(part, latitudes, longitudes);
  part.rows = std::make_shared<AxisMap>(*AxisMap::make(rows.points(), latitudes, false));
  part.columns = std::make_shared<AxisMap>(*AxisMap::make(columns.points(), longitudes, true));
  share(part, method, std::move(known_by),
        [&, &down = rows, &along = columns] { return std::make_shared<const GridPoints>(down, along); });
}

/// A field whose points each have a latitude and a longitude.
void FileSet::place_scattered(Part& part, Regrid method) {
  const Shape& shape = part.variable->shape;
  const std::string& path = use(part.file).file().path();
  if (!grid_.geographic && !places_) {
    throw DataError(concat(part.variable->name, " in ", path,
                           " does not lie on the projection of the data; a climatology has to"));
  }
  if (part.axes.cells < 0) {
    part.rows = all_of(shape[part.axes.latitude]);
    part.columns = all_of(shape[part.axes.longitude]);
  } else if (method == Regrid::kConservative && !grid_.geographic) {
    throw DataError(concat(part.variable->name, " in ", path,
                           " is brought to a projection, to which data.regrid has \"linear\", \"nearest\" "
                           "and \"inverse_distance\""));
  }
  share(part, method, sample_points(part), [&] { return find_points(part, method); });
}

std::vector<double> FileSet::sample_points(const Part& part) {
  const Shape plane = part.axes.plane_of(part.variable->shape);
  std::vector<double> known_by = {static_cast<double>(plane[0]), static_cast<double>(plane[1])};
  for (const Box& sample : samples_of(plane)) {
    const ListedPlaces places = places_of(part, sample);
    known_by.insert(known_by.end(), places.latitudes.begin(), places.latitudes.end());
    known_by.insert(known_by.end(), places.longitudes.begin(), places.longitudes.end());
  }
  return known_by;
}

std::shared_ptr<const SourcePoints> FileSet::find_points(const Part& part, Regrid method) {
  const bool listed = part.axes.cells >= 0;
  const Box plane = Box::whole(part.axes.plane_of(part.variable->shape));
  auto [latitudes, longitudes] = places_of(part, plane);
  const bool in_rows = listed && method != Regrid::kInverseDistance;
  if (auto rows = in_rows ? RowPoints::find(latitudes, longitudes) : nullptr) return rows;
  if (method != Regrid::kNearest && method != Regrid::kInverseDistance) {
    throw DataError(concat(part.variable->name, " in ", use(part.file).file().path(), " lies on ",
                           latitudes.size(),
                           " points that are in no rows of one latitude and equal steps; data.regrid brings "
                           "it to the grid by \"inverse_distance\" or \"nearest\""));
  }
  return std::make_shared<const ScatteredPoints>(std::move(latitudes), std::move(longitudes),
                                                 listed ? 0 : plane.extent[1]);
}

/// Latitudes and longitudes at rows and columns of a file.
ListedPlaces FileSet::places_of(const Part& part, const Box& plane) {
  Pin pin(*this, part.file);
  DataFile& file = pin.file();
  const auto [latitudes, longitudes] = file.places(*part.variable);
  if (std::optional<ListedPlaces> named =
          part.axes.cells >= 0 ? file.named_places(*part.variable) : std::nullopt) {
    for (std::vector<double>* const degrees : {&named->latitudes, &named->longitudes}) {
      const auto first = degrees->begin() + plane.begin[1];
      *degrees = std::vector<double>(first, first + plane.extent[1]);
    }
    return std::move(*named);
  }
  ListedPlaces places{degrees_of(part, *latitudes, plane), degrees_of(part, *longitudes, plane)};
  if (part.axes.cells >= 0 && plane.extent[1] == latitudes->shape[0])
    require_known_unit(file.file().path(), *latitudes, *longitudes, places);
  forget_zeros(part.file, {latitudes, longitudes}, places.latitudes, places.longitudes);
  const auto beyond =
      std::ranges::find_if(places.latitudes, [](double value) { return std::abs(value) > 90.01; });
  if (beyond == places.latitudes.end()) return places;
  throw DataError(concat(latitudes->name, " in ", file.file().path(), " holds the latitude ", *beyond,
                         "° with its unit \"", printable(latitudes->text("units").substr(0, 60)),
                         "\"; write the unit that its values have"));
}

std::vector<double> FileSet::degrees_of(const Part& part, const FileVariable& degrees, const Box& plane) {
  Box slab{Shape::filled(degrees.shape.rank(), 0), Shape::filled(degrees.shape.rank(), 1)};
  const int last = degrees.shape.rank() - 1;
  slab.begin[last] = plane.begin[1];
  slab.extent[last] = plane.extent[1];
  if (part.axes.cells < 0) {
    slab.begin[last - 1] = plane.begin[0];
    slab.extent[last - 1] = plane.extent[0];
  }
  std::vector<double> values(static_cast<std::size_t>(plane.extent.count()));
  Pin pin(*this, part.file);
  pin.file().file().read<double>(degrees, slab, values);
  if (counts_radians(degrees.text("units")))
    for (double& value : values) value *= 180 / std::numbers::pi;
  return values;
}

/// The points `box` of the grid.
TargetPoints FileSet::targets_of(const Box& box, Regrid method) {
  TargetPoints targets;
  if (!grid_.geographic) {
    PointPlaces places = read_degrees(box);
    targets.latitude = std::move(places.latitude);
    targets.longitude = std::move(places.longitude);
    return targets;
  }
  const GridAxis &rows = grid_.axes[0], &columns = grid_.axes[1];
  for (std::int64_t i = box.begin[0]; i < box.end(0); ++i) {
    for (std::int64_t j = box.begin[1]; j < box.end(1); ++j) {
      const auto row = static_cast<std::size_t>(i), column = static_cast<std::size_t>(j);
      targets.latitude.push_back(rows.coordinates[row]);
      targets.longitude.push_back(columns.coordinates[column]);
      if (method != Regrid::kConservative) continue;
      const auto [south, north] = std::minmax({rows.bounds[row], rows.bounds[row + 1]});
      const auto [west, east] = std::minmax({columns.bounds[column], columns.bounds[column + 1]});
      targets.cells.push_back({south, north, west, east});
    }
  }
  return targets;
}

/// The same of the first, middle and last row.
TargetPoints FileSet::sampled_targets(Regrid method) {
  TargetPoints all;
  if (!grid_.geographic) {
    all.latitude = (*sampled_places_)[0];
    all.longitude = (*sampled_places_)[1];
    return all;
  }
  const Shape extents = grid_.shape();
  for (const std::int64_t row : {std::int64_t{0}, extents[0] / 2, extents[0] - 1}) {
    const TargetPoints some = targets_of({{row, 0}, {1, extents[1]}}, method);
    all.latitude.insert(all.latitude.end(), some.latitude.begin(), some.latitude.end());
    all.longitude.insert(all.longitude.end(), some.longitude.begin(), some.longitude.end());
    all.cells.insert(all.cells.end(), some.cells.begin(), some.cells.end());
  }
  return all;
}

void FileSet::require_reach(const Part& part, const PointWeights& weights, const TargetPoints& targets) {
  if (!weights.beyond()) return;
  const std::size_t point = *weights.beyond();
  throw DataError(concat(part.variable->name, " in ", use(part.file).file().path(), " does not reach ",
                         targets.latitude[point], "° N, ", targets.longitude[point], "° E, where ",
                         grid_file_,
                         " has a point; data.regrid can bring it to that grid only where it has "
                         "values"));
}

/// One thread finds them, for which others wait that want the same.
std::shared_ptr<const PointWeights> FileSet::weights_at(const Part& part, const Box& box) {
  constexpr std::size_t kFewest = 4;
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 27;
  const std::lock_guard lock(kept_weights_mutex_);
  const auto known = std::ranges::find_if(
      kept_weights_, [&](const KeptWeights& kept) { return kept.source == part.source && kept.box == box; });
  if (known != kept_weights_.end()) {
    std::rotate(known, known + 1, kept_weights_.end());
    return kept_weights_.back().weights;
  }
  const Source& source = *part.source;
  const TargetPoints targets = targets_of(box, source.method);
  auto weights = std::make_shared<const PointWeights>(source.points->weights(targets, source.method));
  require_reach(part, *weights, targets);
  kept_weights_.push_back({part.source, box, weights});
  const auto bytes = [&] {
    return std::accumulate(
        kept_weights_.begin(), kept_weights_.end(), std::int64_t{0},
        [](std::int64_t sum, const KeptWeights& kept) { return sum + kept.weights->bytes(); });
  };
  while (kept_weights_.size() > kFewest && bytes() > kMostBytes) kept_weights_.pop_front();
  return weights;
}

}  // namespace jigsaw::inline fields
