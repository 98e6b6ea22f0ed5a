#include "fields/named_places.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numbers>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "base/text.h"
#include "files/coordinate_units.h"
#include "files/probe.h"

namespace jigsaw::inline fields {

namespace {

/// What columns and variables of names are called, the likeliest first.
std::vector<std::string_view> titles_of_names() {
  return {"name", "station", "station_name", "site", "id", "station_id", "stid", "wmo_id", "location"};
}

/// Degrees that are there must be degrees.
void require_place(double latitude, double longitude, const std::string& where) {
  if (std::abs(latitude) > 90)
    throw DataError(concat(where, ": the latitude ", latitude, " is none; it must lie between -90 and 90"));
  if (longitude < -180 || longitude > 360)
    throw DataError(
        concat(where, ": the longitude ", longitude, " is none; it must lie between -180 and 360"));
}

/// The variable that names the points along a dimension; null where none does.
const FileVariable* names_along(const VariableFile& file, const std::string& dimension, std::int64_t points) {
  const auto along = [&](const FileVariable& variable) {
    const int rank = variable.shape.rank();
    return !variable.dimensions.empty() && variable.dimensions[0] == dimension &&
           variable.shape[0] == points && (rank == 1 || (rank == 2 && !variable.numeric()));
  };
  std::vector<std::string_view> wanted = titles_of_names();
  wanted.push_back(dimension);
  for (const std::string_view name : wanted) {
    for (const FileVariable& variable : file.variables())
      if (along(variable) && without_groups(variable.name) == name) return &variable;
  }
  return nullptr;
}

std::vector<double> degrees_of(VariableFile& file, const FileVariable& variable) {
  std::vector<double> degrees = file.read_all(variable);
  if (counts_radians(variable.text("units")))
    for (double& value : degrees) value *= 180 / std::numbers::pi;
  return degrees;
}

NamedPlaces places_in_table(const std::string& path) {
  TextTable table(path);
  const PlaceColumns columns(table);
  NamedPlaces places;
  std::set<std::tuple<std::string, double, double>> known;  // a table of series has each place many times
  while (table.next()) {
    columns.add(table, places);
    const bool is_new =
        !columns.have_names() ||
        known.insert({places.names.back(), places.latitudes.back(), places.longitudes.back()}).second;
    if (!is_new) places.drop_last();
  }
  if (places.size() == 0) throw DataError(path + " lists no places");
  return places;
}

/// The names along a dimension; positions where nothing names them, or in a way that is not read.
std::vector<std::string> names_of(VariableFile& file, const std::string& dimension, std::int64_t points) {
  const FileVariable* const variable = names_along(file, dimension, points);
  std::vector<std::string> names;
  if (variable != nullptr && variable->numeric()) {
    for (const double number : file.read_all(*variable)) {
      const bool whole = std::abs(number) < 1e15 && std::trunc(number) == number;
      names.push_back(std::to_string(whole ? std::llround(number) : std::ssize(names)));
    }
    return names;
  }
  try {
    if (variable != nullptr) names = file.read_texts(*variable);
  } catch (const DataError&) {
    names.clear();  // as of Zarr
  }
  for (std::string& name : names) name = as_utf8(name);
  for (std::int64_t i = std::ssize(names); i < points; ++i) names.push_back(std::to_string(i));
  return names;
}

/// Of a file that has nothing else along the dimension of places.
const FileVariable* degrees_named(const VariableFile& file, std::string_view standard_name,
                                  std::string_view short_name) {
  for (const FileVariable& variable : file.variables()) {
    const std::string name = without_groups(variable.name);
    const bool named =
        name == standard_name || name == short_name || variable.text("standard_name") == standard_name;
    if (named && variable.numeric() && variable.shape.rank() == 1 && variable.dimensions[0] != variable.name)
      return &variable;
  }
  return nullptr;
}

NamedPlaces listed(VariableFile& file, const FileVariable& latitudes, const FileVariable& longitudes) {
  ListedPlaces degrees{degrees_of(file, latitudes), degrees_of(file, longitudes)};
  require_known_unit(file.path(), latitudes, longitudes, degrees);
  NamedPlaces places;
  places.latitudes = std::move(degrees.latitudes);
  places.longitudes = std::move(degrees.longitudes);
  places.names = names_of(file, latitudes.dimensions[0], std::ssize(places.latitudes));
  return places;
}

bool is_same_place(const NamedPlaces& places, std::size_t one, std::size_t other) {
  const double around = std::remainder(places.longitudes[one] - places.longitudes[other], 360);
  return places.latitudes[one] == places.latitudes[other] && around == 0;
}

void require_places(const NamedPlaces& places, const std::string& path) {
  for (std::size_t i = 0; i < places.size(); ++i) {
    require_place(places.latitudes[i], places.longitudes[i],
                  concat(path, ", place ", i, " (", printable(places.names[i]), ")"));
  }
}

}  // namespace

PlaceColumns::PlaceColumns(const TextTable& table) : name_(table.column(titles_of_names())) {
  const auto latitude = table.column({"latitude", "lat"}),
             longitude = table.column({"longitude", "lon", "lng"});
  if (!latitude || !longitude) {
    table.refuse(concat("the first line must name columns latitude and longitude, and it names ",
                        printable(join(table.columns(), ", "))));
  }
  latitude_ = *latitude;
  longitude_ = *longitude;
}

void PlaceColumns::add(const TextTable& table, NamedPlaces& places) const {
  const double latitude = table.number(latitude_), longitude = table.number(longitude_);
  require_place(latitude, longitude, table.place());
  places.names.push_back(name_ ? table.text(*name_) : std::to_string(places.size()));
  places.latitudes.push_back(latitude);
  places.longitudes.push_back(longitude);
}

NamedPlaces read_places(const std::string& path) {
  if (!is_variable_file(path)) return places_in_table(path);
  probe_files({path}, Dimensions::kByName, External::kRefused);
  DataFile file(open_variables(path, Dimensions::kByName));
  for (const FileVariable& variable : file.file().variables())
    if (file.axes(variable).cells >= 0) return places_of(file, variable);
  const FileVariable* const latitudes = degrees_named(file.file(), "latitude", "lat");
  const FileVariable* const longitudes = degrees_named(file.file(), "longitude", "lon");
  if (latitudes != nullptr && longitudes != nullptr && latitudes->dimensions == longitudes->dimensions) {
    NamedPlaces places = listed(file.file(), *latitudes, *longitudes);
    require_places(places, path);
    return places;
  }
  throw DataError(path +
                  " lists no places: no variable in it lies along a dimension of which one variable holds "
                  "latitudes and another one longitudes");
}

std::string remark_on_names(const NamedPlaces& places, const std::string& source) {
  std::map<std::string_view, std::size_t> first;
  std::set<std::string_view> alike;
  std::string remark;
  const auto text = [&](std::size_t i) { return concat(places.latitudes[i], ", ", places.longitudes[i]); };
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto [known, added] = first.insert({places.names[i], i});
    const std::size_t before = known->second;
    if (added || is_same_place(places, before, i) || !alike.insert(places.names[i]).second) continue;
    if (remark.empty())
      remark = concat(source, " has several places that are called ", printable(places.names[i]), ", at ",
                      text(before), " and at ", text(i));
  }
  if (alike.size() > 1) remark += concat(", and so of ", counted(std::ssize(alike) - 1, "more name"));
  return remark;
}

NamedPlaces places_of(DataFile& file, const FileVariable& variable) {
  const int cells = file.axes(variable).cells;
  require(cells >= 0, "a list of points is one");
  NamedPlaces places;
  if (std::optional<ListedPlaces> named = file.named_places(variable)) {
    places.latitudes = std::move(named->latitudes);
    places.longitudes = std::move(named->longitudes);
    places.names = names_of(file.file(), variable.dimensions[static_cast<std::size_t>(cells)],
                            std::ssize(places.latitudes));
  } else {
    const auto [latitudes, longitudes] = file.places(variable);
    places = listed(file.file(), *latitudes, *longitudes);
  }
  require_places(places, file.file().path());
  return places;
}

}  // namespace jigsaw::inline fields
