#include "fields/data_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <string_view>

#include "base/error.h"
#include "base/printable.h"
#include "base/text.h"
#include "fields/units.h"
#include "files/coordinate_units.h"

namespace jigsaw::inline fields {

enum class AxisKind : std::uint8_t {
  kTime,
  kLevel,
  kLatitude,
  kLongitude,
  kVersion,
  kChannel,
  kMember,
  kOther
};

namespace {

bool one_of(const std::string& text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

AxisKind kind_by_name(const std::string& path) {
  const std::string name = without_groups(path);
  if (one_of(name, {"latitude", "lat", "Latitude", "nav_lat", "XLAT"})) return AxisKind::kLatitude;
  if (one_of(name, {"longitude", "lon", "Longitude", "nav_lon", "XLONG"})) return AxisKind::kLongitude;
  if (one_of(name, {"time", "Time", "valid_time", "timestamp"})) return AxisKind::kTime;
  if (one_of(name, {"level", "pressure_level", "plev", "lev", "isobaricInhPa"})) return AxisKind::kLevel;
  if (one_of(name, {"depth", "deptht", "depthu", "depthv", "depthw", "nav_lev", "olevel", "st_ocean", "z_t"}))
    return AxisKind::kLevel;
  if (one_of(name, {"expver", "experimentVersionNumber"})) return AxisKind::kVersion;
  if (one_of(name, {"number", "realization", "member", "member_id", "ensemble", "ens"}))
    return AxisKind::kMember;
  return AxisKind::kOther;
}

/// Since a date, or since none.
bool counts_time(const std::string& units) {
  return counts_since(units) || calendar_of_times(units, "", "") == Calendar::kNone;
}

/// Whether a coordinate says by CF's attributes that it is upright, whatever its units.
bool is_upright(const FileVariable& coordinate) {
  const std::string standard_name = coordinate.text("standard_name"), positive = coordinate.text("positive");
  if (coordinate.text("axis") == "Z" || !positive.empty()) return true;
  if (one_of(standard_name, {"air_pressure", "altitude"})) return true;
  if (standard_name.starts_with("depth") || standard_name.starts_with("height")) return true;
  const bool of_fluid = standard_name.starts_with("ocean_") || standard_name.starts_with("atmosphere_");
  return of_fluid && standard_name.find("_coordinate") != std::string::npos;
}

AxisKind kind_of(const std::string& name, const FileVariable* coordinate) {
  if (coordinate == nullptr) return kind_by_name(name);
  if (!coordinate->numeric() && one_of(without_groups(name), {"channel", "variable"}))
    return AxisKind::kChannel;
  const std::string standard_name = coordinate->text("standard_name"), units = coordinate->text("units");
  const std::string axis = coordinate->text("axis");
  if (standard_name == "latitude" || counts_north(units)) return AxisKind::kLatitude;
  if (standard_name == "longitude" || counts_east(units)) return AxisKind::kLongitude;
  if (standard_name == "time") return AxisKind::kTime;
  if (standard_name == "realization") return AxisKind::kMember;
  if (standard_name.empty() && counts_since(units)) return AxisKind::kTime;
  // Lengths on a projection, and degrees about another pole, are no latitudes and longitudes.
  if (standard_name.starts_with("projection_") || standard_name.starts_with("grid_")) return AxisKind::kOther;
  if (is_upright(*coordinate) || units_per_hectopascal(units)) return AxisKind::kLevel;
  const AxisKind by_name = kind_by_name(name);
  if (is_length(units)) return by_name == AxisKind::kLevel ? by_name : AxisKind::kOther;
  // Rows and columns are counted in other units at times.
  if (axis == "Y" && counts_degrees(units)) return AxisKind::kLatitude;
  if (axis == "X" && counts_degrees(units)) return AxisKind::kLongitude;
  if (axis == "T") return AxisKind::kTime;
  return by_name;
}

/// Whether fields stand at one height or depth along an axis, as t2m at 2 m does: which one goes without
/// saying.
bool is_one_height(const FileVariable* coordinate) {
  return coordinate != nullptr && coordinate->shape.count() == 1 && is_length(coordinate->text("units"));
}

}  // namespace

bool names_coordinate(const FileVariable& variable, const FileVariable& coordinate) {
  const std::string name = without_groups(coordinate.name);
  return std::ranges::any_of(split(variable.text("coordinates"), ' '),
                             [&](const std::string& named) { return without_groups(named) == name; });
}

void DataFile::describe_channels(const ChannelLayout& layout) {
  const std::string& path = file_->path();
  const FileVariable* variable = file_->find(layout.variable);
  if (variable == nullptr)
    throw DataError(concat("data.makani: ", path, " has no data set ", layout.variable));
  const Shape& shape = variable->shape;
  const auto channels = std::ssize(layout.channels);
  if (shape.rank() != 4 || shape[1] != channels) {
    throw DataError(concat("data.makani: ", layout.variable, " in ", path, " is ", shape,
                           ", and must be [time, channel, latitude, longitude] with ", channels,
                           " channels"));
  }
  const std::string stem = std::filesystem::path(path).stem().string();
  int year = 0;
  const auto [end, error] =
      std::from_chars(stem.data(), stem.data() + std::min<std::size_t>(stem.size(), 4), year);
  if (error != std::errc() || end != stem.data() + 4)
    throw DataError(concat("data.makani: the name of ", path, " must begin with its year, as 2018.h5 does"));
  given_ = variable;
  names_[variable->dimensions[1]] = layout.channels;
  const auto degrees = [&](int axis, const std::vector<double>& known, const std::vector<double>& usual) {
    if (!known.empty() && std::ssize(known) != shape[axis]) {
      throw DataError(concat("data.makani: ", layout.variable, " in ", path, " has ", shape[axis],
                             axis == 2 ? " rows" : " columns", ", and the metadata ", known.size()));
    }
    coordinates_[variable->dimensions[static_cast<std::size_t>(axis)]] = known.empty() ? usual : known;
  };
  degrees(2, layout.latitudes, equiangular_latitudes(shape[2]));
  degrees(3, layout.longitudes, equiangular_longitudes(shape[3]));
  std::vector<Time>& times = times_[variable->dimensions[0]];
  const Time first = days_from_date({year, 1, 1}, Calendar::kStandard) * kDay;
  for (std::int64_t i = 0; i < shape[0]; ++i) times.push_back(first + i * layout.hours * kHour);
}

const FileVariable* DataFile::coordinate_of(const VariableFile& file, const std::string& dimension) {
  const FileVariable* variable = file.find(dimension);
  const bool matches =
      variable != nullptr && variable->shape.rank() == 1 && variable->dimensions[0] == dimension;
  return matches ? variable : nullptr;
}

bool DataFile::is_given(const std::string& dimension, int axis) const {
  return given_ != nullptr && given_->dimensions[static_cast<std::size_t>(axis)] == dimension;
}

FieldAxes DataFile::axes(const FileVariable& variable) const {
  FieldAxes axes;
  if (given_ == &variable) {
    axes.time = 0;
    axes.channel = 1;
    axes.latitude = 2;
    axes.longitude = 3;
    return axes;
  }
  for (int d = 0; d < variable.shape.rank(); ++d) {
    const std::string& name = variable.dimensions[static_cast<std::size_t>(d)];
    int* place = nullptr;
    switch (kind_of(name, coordinate_of(*file_, name))) {
      case AxisKind::kTime:
        if (const FileVariable* times = times_along(name); times != nullptr && times->shape.rank() > 0)
          place = &axes.time;
        break;
      case AxisKind::kLevel:
        place = &axes.level;
        break;
      case AxisKind::kLatitude:
        place = &axes.latitude;
        break;
      case AxisKind::kLongitude:
        place = &axes.longitude;
        break;
      case AxisKind::kVersion:
        place = &axes.version;
        break;
      case AxisKind::kChannel:
        place = &axes.channel;
        break;
      case AxisKind::kMember:
        place = &axes.member;
        break;
      case AxisKind::kOther:
        break;
    }
    // Of two axes of one kind the first counts, unless it is a height beside levels; the other has to be of
    // extent 1.
    const bool beside_levels =
        place == &axes.level && *place >= 0 &&
        is_one_height(coordinate_of(*file_, variable.dimensions[static_cast<std::size_t>(*place)]));
    if (place != nullptr && (*place < 0 || beside_levels)) *place = d;
  }
  if (!axes.horizontal() && variable.shape.rank() >= 2) find_projection(variable, axes);
  if (!axes.horizontal()) find_cells(variable, axes);
  if (axes.time < 0) axes.time = other_time_axis(variable, axes);
  return axes;
}

/// Rows and columns of a field whose points have latitudes and longitudes of their own.
void DataFile::find_projection(const FileVariable& variable, FieldAxes& axes) const {
  const FileVariable* latitudes = place_variable(AxisKind::kLatitude, variable, 2);
  if (latitudes == nullptr || place_variable(AxisKind::kLongitude, variable, 2) == nullptr) return;
  const auto position = [&](const std::string& dimension) {
    const auto found = std::find(variable.dimensions.begin(), variable.dimensions.end(), dimension);
    return static_cast<int>(found - variable.dimensions.begin());
  };
  axes.latitude = position(*(latitudes->dimensions.end() - 2));
  axes.longitude = position(latitudes->dimensions.back());
  axes.projected = true;
}

/// The dimension of a list of points that have latitudes and longitudes of their own.
void DataFile::find_cells(const FileVariable& variable, FieldAxes& axes) const {
  if (axes.latitude >= 0 || axes.longitude >= 0) return;
  const FileVariable* latitudes = place_variable(AxisKind::kLatitude, variable, 1);
  const FileVariable* longitudes = place_variable(AxisKind::kLongitude, variable, 1);
  int d = -1;
  if (latitudes != nullptr && longitudes != nullptr && latitudes->dimensions == longitudes->dimensions) {
    const auto found = std::ranges::find(variable.dimensions, latitudes->dimensions[0]);
    d = static_cast<int>(found - variable.dimensions.begin());
  } else {
    d = named_cells(variable);
  }
  if (d < 0) return;
  // The places of what moves stand along its times.
  for (const int other : {axes.time, axes.level, axes.version, axes.channel, axes.member})
    if (other == d) return;
  axes.cells = d;
}

/// A dimension that is no axis by itself, as `step` of a forecast, along which a variable says the times; -1
/// where there is none.
int DataFile::other_time_axis(const FileVariable& variable, const FieldAxes& axes) const {
  for (int d = 0; d < variable.shape.rank(); ++d) {
    const std::string& name = variable.dimensions[static_cast<std::size_t>(d)];
    if (d == axes.latitude || d == axes.longitude || d == axes.cells) continue;
    if (kind_of(name, coordinate_of(*file_, name)) != AxisKind::kOther) continue;
    if (valid_times_along(name) != nullptr) return d;
  }
  return -1;
}

/// The one of latitudes or longitudes in the plane of a variable's last dimensions, or along one of them
/// (`dims`): the one that it names in `coordinates`, as fields on staggered grids do, else the first; null
/// when there is none.
const FileVariable* DataFile::place_variable(AxisKind kind, const FileVariable& variable, int dims) const {
  const FileVariable* first = nullptr;
  for (const FileVariable& candidate : file_->variables()) {
    const auto rank = static_cast<int>(candidate.dimensions.size());
    const bool fits = rank == dims || (dims == 2 && rank == 3);
    if (!candidate.numeric() || !fits || &candidate == &variable) continue;
    if (kind_of(candidate.name, &candidate) != kind) continue;
    const bool in_plane =
        std::all_of(candidate.dimensions.end() - dims, candidate.dimensions.end(), [&](const auto& name) {
          return std::find(variable.dimensions.begin(), variable.dimensions.end(), name) !=
                 variable.dimensions.end();
        });
    if (in_plane && names_coordinate(variable, candidate)) return &candidate;
    if (in_plane && first == nullptr) first = &candidate;
  }
  return first;
}

std::pair<const FileVariable*, const FileVariable*> DataFile::places(const FileVariable& variable) const {
  const int dims = axes(variable).cells >= 0 ? 1 : 2;
  const std::pair found{place_variable(AxisKind::kLatitude, variable, dims),
                        place_variable(AxisKind::kLongitude, variable, dims)};
  for (const FileVariable* const degrees : {found.first, found.second}) {
    const bool in_radians = degrees != nullptr && dims == 1 && counts_radians(degrees->text("units"));
    if (degrees != nullptr && !in_radians) require_degrees(*degrees);
  }
  return found;
}

bool DataFile::at_one_height(const FileVariable& variable) const {
  const int level = axes(variable).level;
  return level >= 0 &&
         is_one_height(coordinate_of(*file_, variable.dimensions[static_cast<std::size_t>(level)]));
}

std::optional<double> DataFile::height_of(const FileVariable& variable) {
  const int level = axes(variable).level;
  const FileVariable* const said =
      level < 0 ? scalar_level(variable)
      : variable.shape[level] == 1
          ? coordinate_of(*file_, variable.dimensions[static_cast<std::size_t>(level)])
          : nullptr;
  if (said == nullptr || !is_length(said->text("units"))) return std::nullopt;
  const double height = in_level_units(file_->read_all(*said).at(0), said->text("units"));
  return std::isfinite(height) ? std::optional(height) : std::nullopt;
}

const FileVariable* DataFile::scalar_level(const FileVariable& variable) const {
  const FieldAxes here = axes(variable);
  if (here.level >= 0 || here.channel >= 0) return nullptr;
  const FileVariable* found = nullptr;
  for (const FileVariable& candidate : file_->variables()) {
    if (!candidate.numeric() || candidate.shape.rank() != 0) continue;
    if (kind_of(candidate.name, &candidate) != AxisKind::kLevel) continue;
    // A pressure alone may be a number of a model, as its reference pressure.
    if (!is_upright(candidate) && kind_by_name(candidate.name) != AxisKind::kLevel) continue;
    if (found != nullptr) return nullptr;
    found = &candidate;
  }
  return found == nullptr || belongs_to(*found, variable) ? found : nullptr;
}

/// Whether a scalar coordinate is one of this variable: where any names it, of those alone that do.
bool DataFile::belongs_to(const FileVariable& scalar, const FileVariable& variable) const {
  const auto names_it = [&](const FileVariable& one) { return names_coordinate(one, scalar); };
  return names_it(variable) || std::ranges::none_of(file_->variables(), names_it);
}

std::optional<double> DataFile::level_of(const FileVariable& variable) {
  const FileVariable* const scalar = scalar_level(variable);
  if (scalar == nullptr) return std::nullopt;
  auto known = coordinates_.find(scalar->name);
  if (known == coordinates_.end()) {
    const std::vector<double> level = {in_level_units(file_->read_all(*scalar).at(0), scalar->text("units"))};
    known = coordinates_.insert({scalar->name, level}).first;
  }
  const double level = known->second.at(0);
  return std::isfinite(level) ? std::optional(level) : std::nullopt;
}

std::optional<CoordinateDescription> DataFile::scalar_member() {
  const auto& variables = file_->variables();
  const auto found = std::ranges::find_if(variables, [](const FileVariable& variable) {
    return variable.numeric() && variable.shape.rank() == 0 &&
           kind_of(variable.name, &variable) == AxisKind::kMember;
  });
  if (found == variables.end()) return std::nullopt;
  if (!scalar_member_) scalar_member_ = describe_scalar(*found);
  return scalar_member_;
}

/// Whether a variable counts leads.
bool DataFile::counts_leads(const FileVariable& variable) {
  if (!variable.numeric()) return false;
  const std::string name = without_groups(variable.name), units = variable.text("units");
  if (counts_since(units)) return false;
  const bool named = one_of(name, {"prediction_timedelta", "lead_time", "leadtime", "lead", "step",
                                   "forecast_period", "forecast_hour", "fhour"});
  return (named && counts_time(units)) || variable.text("standard_name") == "forecast_period";
}

const FileVariable* DataFile::leads_along(const std::string& dimension) const {
  const FileVariable* const variable = coordinate_of(*file_, dimension);
  return variable != nullptr && counts_leads(*variable) ? variable : nullptr;
}

bool DataFile::starts_along(const std::string& dimension) const {
  return std::ranges::any_of(file_->variables(), [&](const FileVariable& variable) {
    return variable.dimensions == std::vector{dimension} && variable.name != dimension &&
           variable.text("standard_name") == "forecast_reference_time";
  });
}

bool DataFile::counts_dates(const std::string& dimension) const {
  const FileVariable* const variable = coordinate_of(*file_, dimension);
  return variable != nullptr && variable->numeric() && counts_since(variable->text("units"));
}

const FileVariable* DataFile::scalar_lead() const {
  const auto found = std::ranges::find_if(file_->variables(), [](const FileVariable& variable) {
    return variable.shape.rank() == 0 && counts_leads(variable);
  });
  return found == file_->variables().end() ? nullptr : &*found;
}

const FileVariable* DataFile::scalar_start() const {
  const FileVariable* found = nullptr;
  for (const FileVariable& variable : file_->variables()) {
    if (!variable.numeric() || variable.shape.rank() != 0 || !counts_since(variable.text("units"))) continue;
    const std::string standard_name = variable.text("standard_name"), name = without_groups(variable.name);
    const bool said = standard_name == "forecast_reference_time";
    const bool named = one_of(name, {"forecast_reference_time", "init_time", "initial_time", "reference_time",
                                     "init", "start_time", "analysis_time", "time"});
    if (!said && !(named && standard_name.empty())) continue;
    if (found == nullptr || said) found = &variable;
  }
  return found;
}

bool DataFile::says_valid_times(const std::string& dimension) const {
  const FileVariable* const times = times_along(dimension);
  const bool hold = times != nullptr && times->text("standard_name") == "time";
  return hold || times == valid_times_along(dimension);
}

std::optional<Time> DataFile::lead_beside(const FileVariable& variable, const std::string& times) const {
  const FileVariable* const lead = scalar_lead();
  if (lead == nullptr || !belongs_to(*lead, variable) || says_valid_times(times)) return std::nullopt;
  const std::vector<double> value = file_->read_all(*lead);
  if (!counts_time(lead->text("units")) || !std::isfinite(value.at(0)) || value[0] == 0) return std::nullopt;
  return decode_times(value, lead->text("units"), "", concat("the lead ", lead->name, " of ", file_->path()))
      .at(0);
}

/// The lead of a dimension of one entry, where times along another one do not count it: "6 hours"; or "".
std::string DataFile::lead_along(const FileVariable& variable, int time, int d) const {
  const FileVariable* const lead = leads_along(variable.dimensions[static_cast<std::size_t>(d)]);
  if (lead == nullptr || lead->shape.count() != 1) return "";
  if (says_valid_times(variable.dimensions[static_cast<std::size_t>(time)])) return "";
  const double value = file_->read_all(*lead)[0];
  return value == 0 ? "" : concat(value, " ", lead->text("units"));
}

void DataFile::require_field(const FileVariable& variable, const std::vector<std::string>& free,
                             bool uniform) const {
  file_->require_numbers(variable);
  const FieldAxes found = axes(variable);
  const auto refuse = [&](const std::string& why) {
    throw DataError(concat(variable.name, " in ", file_->path(), " cannot be used: ", why));
  };
  const bool series =
      uniform && found.cells < 0 && found.latitude < 0 && found.longitude < 0 && found.time >= 0;
  const bool nameless =
      variable.shape.rank() > 0 && std::ranges::all_of(variable.dimensions, [](const std::string& dimension) {
        return dimension.starts_with("dim_");
      });
  if (!found.horizontal() && !series && nameless && file_->format() == "Zarr")
    refuse(
        "the store names none of its dimensions, which xarray writes as _ARRAY_DIMENSIONS, in format 3 as "
        "dimension_names");
  if (std::string why = series ? "" : unread_grid(variable, found); !why.empty()) refuse(why);
  if (!found.horizontal() && !series) {
    refuse(
        concat("no latitude and longitude are known among its dimensions (", join(variable.dimensions, ", "),
               "); fields have coordinates in degrees_north and degrees_east, of their rows and columns or "
               "of each point: on a projection two variables on the dimensions of its rows and columns, "
               "which pyproj computes from its x and y"));
  }
  for (int d = 0; d < variable.shape.rank(); ++d) {
    if (d == found.time || d == found.level || d == found.latitude || d == found.longitude) continue;
    if (d == found.version || d == found.channel || d == found.member || d == found.cells) continue;
    const std::string dimension = without_groups(variable.dimensions[static_cast<std::size_t>(d)]);
    if (std::find(free.begin(), free.end(), dimension) != free.end()) continue;
    if (variable.shape[d] == 1) {
      const std::string lead = found.time >= 0 ? lead_along(variable, found.time, d) : "";
      if (lead.empty()) continue;
      refuse(concat(
          "its dimension ", dimension, " has the one entry ", lead, ", so that ",
          variable.dimensions[static_cast<std::size_t>(found.time)],
          " counts when forecasts began and not when they hold; `lead` of the variable takes it, at start + "
          "lead"));
    }
    if (found.time < 0 && kind_by_name(dimension) == AxisKind::kTime)
      refuse(concat("it has no times for its dimension ", dimension));
    if (dimension == "lead_time" && file_->find("valid_time") != nullptr) {
      refuse(concat("it holds forecasts as predict writes them, with ", variable.shape[d],
                    " entries of its dimension lead_time, and not states that follow each other in time; "
                    "predict --continue goes on from such a file"));
    }
    const std::string& whole = variable.dimensions[static_cast<std::size_t>(d)];
    const std::string what = concat("its dimension ", whole, " has ", variable.shape[d], " entries");
    if (leads_along(whole) != nullptr)
      refuse(concat(what, ", the leads of forecasts; `lead` of the variable says which of them is taken"));
    const bool known = std::ranges::any_of(file_->variables(), [&](const FileVariable& one) {
      return one.name == whole && one.shape.rank() == 1;
    });
    if (known) refuse(concat(what, "; only one can be chosen from, merge them first"));
    refuse(concat(what,
                  " and no coordinate that says what they are; give it a variable of its name with units, as "
                  "\"hours since 2021-01-01\" of times or \"hPa\" of levels (in HDF5 a dimension scale), or "
                  "choose one entry"));
  }
}

std::optional<std::string> DataFile::times_of(const FileVariable& variable, const FieldAxes& axes) const {
  if (axes.time >= 0) return variable.dimensions[static_cast<std::size_t>(axes.time)];
  const FileVariable* const scalar = scalar_time();
  return scalar == nullptr ? std::nullopt : std::optional(scalar->name);
}

/// The time for which a state holds, not that of the analysis that its forecast began with, which cfgrib
/// calls `time`, too. Null where there is none.
const FileVariable* DataFile::scalar_time() const {
  const FileVariable* found = nullptr;
  for (const FileVariable& variable : file_->variables()) {
    const std::string standard_name = variable.text("standard_name");
    if (!variable.numeric() || variable.shape.rank() != 0 || !counts_time(variable.text("units"))) continue;
    if (kind_of(variable.name, &variable) != AxisKind::kTime) continue;
    if (!standard_name.empty() && standard_name != "time") continue;
    if (found == nullptr || without_groups(variable.name) == "valid_time") found = &variable;
  }
  return found;
}

/// The coordinate variable of a dimension.
const FileVariable& DataFile::coordinate(const std::string& dimension) const {
  const FileVariable* variable = coordinate_of(*file_, dimension);
  if (variable == nullptr) {
    throw DataError(
        concat("the dimension ", dimension, " of ", file_->path(), " has no coordinate variable"));
  }
  return *variable;
}

const std::vector<std::string>& DataFile::names(const std::string& dimension) {
  const auto known = names_.find(dimension);
  if (known != names_.end()) return known->second;
  return names_[dimension] = file_->read_texts(coordinate(dimension));
}

const std::vector<double>& DataFile::coordinates(const std::string& dimension) {
  const auto known = coordinates_.find(dimension);
  if (known != coordinates_.end()) return known->second;
  const FileVariable& variable = coordinate(dimension);
  const AxisKind kind = kind_of(dimension, &variable);
  if (kind == AxisKind::kLatitude || kind == AxisKind::kLongitude) require_degrees(variable);
  std::vector<double> values = numbers(variable);
  if (kind == AxisKind::kLevel) {
    const std::string units = variable.text("units");
    for (double& value : values) value = in_level_units(value, units);
    require_different(variable, values);
  }
  return coordinates_[dimension] = std::move(values);
}

void DataFile::require_degrees(const FileVariable& variable) const {
  const std::string units = variable.text("units");
  if (counts_degrees(units)) return;
  throw DataError(concat("the coordinate ", variable.name, " of ", file_->path(), " is in \"",
                         printable(units.substr(0, 60)),
                         "\"; latitudes and longitudes are read in degrees (degrees_north, degrees_east), so "
                         "write it with its values in degrees"));
}

/// A level that stands twice would never be read the second time.
void DataFile::require_different(const FileVariable& variable, std::vector<double> levels) const {
  std::sort(levels.begin(), levels.end());
  const auto twice = std::adjacent_find(levels.begin(), levels.end());
  if (twice == levels.end()) return;
  throw DataError(concat("the coordinate ", variable.name, " of ", file_->path(), " repeats the level ",
                         *twice, "; each level must have a value of its own"));
}

/// All of a coordinate variable; none may be missing.
std::vector<double> DataFile::numbers(const FileVariable& variable) {
  std::vector<double> values = file_->read_all(variable);
  if (std::ranges::any_of(values, [](double value) { return std::isnan(value); })) {
    throw DataError(concat("the coordinate ", variable.name, " of ", file_->path(), " has missing values"));
  }
  return values;
}

}  // namespace jigsaw::inline fields
