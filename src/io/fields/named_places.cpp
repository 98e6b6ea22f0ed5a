#include "fields/named_places.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <memory>
#include <numbers>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/next_line.h"
#include "base/printable.h"
#include "base/text.h"
#include "files/coordinate_units.h"
#include "files/probe.h"

namespace jigsaw::inline fields {

namespace {

constexpr std::array<std::string_view, 2> kLatitudeColumns = {"latitude", "lat"};
constexpr std::array<std::string_view, 3> kLongitudeColumns = {"longitude", "lon", "lng"};
constexpr std::array<std::string_view, 9> kNameColumns = {
    "name", "station", "station_name", "site", "id", "station_id", "stid", "wmo_id", "location"};

void require_place(double latitude, double longitude, const std::string& where) {
  if (!(std::abs(latitude) <= 90))
    throw DataError(concat(where, ": the latitude ", latitude, " is none; it must lie between -90 and 90"));
  if (!(std::abs(longitude) <= 360))
    throw DataError(
        concat(where, ": the longitude ", longitude, " is none; it must lie between -180 and 360"));
}

/// The lines of a table of places.
class PlaceTable {
 public:
  explicit PlaceTable(const std::string& path) : path_(path), text_(path) {
    if (!text_) throw DataError(concat("cannot read ", path));
  }

  NamedPlaces read() {
    if (!next()) refuse("it is empty; its first line must name the columns, such as name,latitude,longitude");
    find_columns();
    NamedPlaces places;
    while (next()) {
      if (cells_.size() == 1 && cells_[0].empty()) continue;
      if (cells_.size() != columns_) {
        refuse(concat("it has ", counted(std::ssize(cells_), "column"), ", and the first line ", columns_));
      }
      const double latitude = number(latitude_, "latitude"), longitude = number(longitude_, "longitude");
      require_place(latitude, longitude, place_of_line());
      places.names.push_back(name_ ? cells_[*name_] : std::to_string(places.size()));
      places.latitudes.push_back(latitude);
      places.longitudes.push_back(longitude);
    }
    if (places.size() == 0) throw DataError(path_ + " lists no places");
    return places;
  }

 private:
  std::string place_of_line() const { return concat(path_, " line ", line_); }
  [[noreturn]] void refuse(const std::string& why) const {
    throw DataError(concat(place_of_line(), ": ", why));
  }

  bool next() {
    std::string line;
    ++line_;
    if (!next_line(text_, line)) return false;
    if (line_ == 1) {
      if (line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
      for (const char sign : {'\t', ';'})
        if (line.find(sign) != std::string::npos) separator_ = sign;
    }
    cells_ = cells_of(line);
    return true;
  }

  /// A cell may stand in quotes, as one that holds a comma does; two of these in it are one.
  std::vector<std::string> cells_of(std::string_view line) const {
    std::vector<std::string> cells(1);
    bool quoted = false;
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (line[i] == '"') {
        const bool doubled = quoted && i + 1 < line.size() && line[i + 1] == '"';
        if (doubled) cells.back() += line[i++];
        if (!doubled) quoted = !quoted;
      } else if (line[i] == separator_ && !quoted) {
        cells.emplace_back();
      } else {
        cells.back() += line[i];
      }
    }
    if (quoted) refuse("a quote (\") is not closed");
    for (std::string& cell : cells) {
      constexpr const char* kBlanks = " \t\r";
      cell.erase(0, std::min(cell.find_first_not_of(kBlanks), cell.size()));
      cell.erase(cell.find_last_not_of(kBlanks) + 1);
    }
    return cells;
  }

  std::optional<std::size_t> column(std::span<const std::string_view> names) const {
    for (const std::string_view name : names) {
      const auto found = std::ranges::find_if(cells_, [&](const std::string& cell) {
        return std::ranges::equal(cell, name,
                                  [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b; });
      });
      if (found != cells_.end()) return static_cast<std::size_t>(found - cells_.begin());
    }
    return std::nullopt;
  }

  void find_columns() {
    columns_ = cells_.size();
    const auto latitude = column(kLatitudeColumns), longitude = column(kLongitudeColumns);
    if (!latitude || !longitude) {
      refuse(concat("the first line must name columns latitude and longitude, and it is ",
                    printable(join(cells_, std::string(1, separator_)))));
    }
    latitude_ = *latitude;
    longitude_ = *longitude;
    name_ = column(kNameColumns);
  }

  double number(std::size_t column, const char* what) const {
    const std::string& cell = cells_[column];
    double value = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (error != std::errc() || end != cell.data() + cell.size() || !std::isfinite(value))
      refuse(concat("the ", what, " must be a number, not ", printable(cell)));
    return value;
  }

  std::string path_;
  std::ifstream text_;
  char separator_ = ',';
  std::int64_t line_ = 0;
  std::size_t columns_ = 0, latitude_ = 0, longitude_ = 0;
  std::optional<std::size_t> name_;
  std::vector<std::string> cells_;  ///< of the line
};

/// The variable that names the points along a dimension; null where none does.
const FileVariable* names_along(const VariableFile& file, const std::string& dimension, std::int64_t points) {
  const auto along = [&](const FileVariable& variable) {
    const int rank = variable.shape.rank();
    return !variable.dimensions.empty() && variable.dimensions[0] == dimension &&
           variable.shape[0] == points && (rank == 1 || (rank == 2 && !variable.numeric()));
  };
  std::vector<std::string_view> wanted(kNameColumns.begin(), kNameColumns.end());
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

}  // namespace

NamedPlaces read_places(const std::string& path) {
  if (!is_variable_file(path)) return PlaceTable(path).read();
  probe_files({path}, Dimensions::kByName, External::kRefused);
  DataFile file(open_variables(path, Dimensions::kByName));
  for (const FileVariable& variable : file.file().variables())
    if (file.axes(variable).cells >= 0) return places_of(file, variable);
  throw DataError(path +
                  " lists no places: no variable in it lies along a dimension of which one variable holds "
                  "latitudes and another one longitudes");
}

NamedPlaces places_of(DataFile& file, const FileVariable& variable) {
  const int cells = file.axes(variable).cells;
  require(cells >= 0, "a list of points is one");
  NamedPlaces places;
  if (std::optional<ListedPlaces> named = file.named_places(variable)) {
    places.latitudes = std::move(named->latitudes);
    places.longitudes = std::move(named->longitudes);
  } else {
    const auto [latitudes, longitudes] = file.places(variable);
    places.latitudes = degrees_of(file.file(), *latitudes);
    places.longitudes = degrees_of(file.file(), *longitudes);
  }
  const std::string& dimension = variable.dimensions[static_cast<std::size_t>(cells)];
  const auto points = std::ssize(places.latitudes);
  if (const FileVariable* names = names_along(file.file(), dimension, points); names == nullptr) {
    for (std::int64_t i = 0; i < points; ++i) places.names.push_back(std::to_string(i));
  } else if (names->numeric()) {
    for (const double number : file.file().read_all(*names))
      places.names.push_back(std::to_string(std::llround(number)));
  } else {
    places.names = file.file().read_texts(*names);
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    require_place(places.latitudes[i], places.longitudes[i],
                  concat(file.file().path(), ", place ", i, " (", printable(places.names[i]), ")"));
  }
  return places;
}

}  // namespace jigsaw::inline fields
