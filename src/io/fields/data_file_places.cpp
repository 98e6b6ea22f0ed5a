// Points whose places are those of a grid that the file names, and places that are one for a whole field.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/lower_case.h"
#include "base/printable.h"
#include "base/text.h"
#include "fields/data_file.h"
#include "files/coordinate_units.h"

namespace jigsaw::inline fields {

namespace {

/// The least and the largest number; of none both are missing.
std::pair<double, double> ends_of(const std::vector<double>& values) {
  std::pair ends{std::nan(""), std::nan("")};
  for (const double value : values) ends = {std::fmin(ends.first, value), std::fmax(ends.second, value)};
  return ends;
}

/// As a sentence has a unit.
std::string unit_of(const FileVariable& degrees) {
  return concat("\"", printable(degrees.text("units").substr(0, 60)), "\"");
}

}  // namespace

void require_known_unit(const std::string& path, const FileVariable& latitudes,
                        const FileVariable& longitudes, const ListedPlaces& places) {
  constexpr double kPi = std::numbers::pi, kRounding = 1e-4;
  const auto [south, north] = ends_of(places.latitudes);
  const auto [west, east] = ends_of(places.longitudes);
  const bool radians_north = counts_radians(latitudes.text("units")),
             radians_east = counts_radians(longitudes.text("units"));
  const bool maybe_north = radians_north || (south >= -kPi / 2 - kRounding && north <= kPi / 2 + kRounding),
             maybe_east = radians_east || (west >= -kPi - kRounding && east <= 2 * kPi + kRounding);
  if (!maybe_north || !maybe_east) return;
  for (const FileVariable* const one : {&latitudes, &longitudes}) {
    if (one->text("units").find_first_not_of(' ') != std::string::npos) continue;
    throw DataError(concat(
        one->name, " in ", path,
        " has no units, and its values may be degrees or radians; write its attribute units "
        "as \"radian\", or as \"degrees_",
        one == &latitudes ? "north" : "east", "\" (ncatted -a units,", one->name, ",c,c,radian FILE)"));
  }
  constexpr double kHigh = 2.9, kWide = 6.1;  // in radians the globe, in degrees hardly any area
  if (radians_north || radians_east || north - south < kHigh || east - west < kWide) return;
  throw DataError(concat(latitudes.name, " in ", path, " goes from ", south, " to ", north, " and ",
                         longitudes.name, " from ", west, " to ", east, ", with the units ",
                         unit_of(latitudes), " and ", unit_of(longitudes),
                         ": these are radians around the globe; write their attribute units as \"radian\" "
                         "(ncatted -a units,",
                         latitudes.name, ",o,c,radian -a units,", longitudes.name, ",o,c,radian FILE)"));
}

namespace {

/// The dimension of the faces of a cubed sphere, or of the tiles of MITgcm's grids; -1 where there is none.
int faces_of(const FileVariable& variable, const FieldAxes& axes) {
  static constexpr std::array<std::string_view, 6> kNames = {"tile", "tiles", "face", "faces", "nf", "ntile"};
  constexpr std::int64_t kCube = 6, kTilesOfOceans = 13;
  // Tiles of land surfaces stand beside rows and columns.
  if (axes.latitude >= 0 && axes.longitude >= 0 && !axes.projected) return -1;
  for (int d = 0; d < variable.shape.rank(); ++d) {
    if (d == axes.level || d == axes.member || d == axes.channel || d == axes.version) continue;
    const std::string name = to_lower(without_groups(variable.dimensions[static_cast<std::size_t>(d)]));
    const bool counted = variable.shape[d] == kCube || variable.shape[d] == kTilesOfOceans;
    if (counted && std::ranges::find(kNames, name) != kNames.end()) return d;
  }
  return -1;
}

}  // namespace

std::string DataFile::unread_grid(const FileVariable& variable, const FieldAxes& axes) const {
  const int rank = variable.shape.rank();
  const auto name = [&](int d) { return without_groups(variable.dimensions[static_cast<std::size_t>(d)]); };
  const int faces = faces_of(variable, axes);
  std::vector<int> plane;  // the last two dimensions beside that of faces
  for (int d = rank - 1; d >= 0 && plane.size() < 2; --d)
    if (d != faces && d != axes.time && d != axes.level) plane.insert(plane.begin(), d);
  if (faces >= 0 && plane.size() == 2) {
    return concat(
        "its dimension ", name(faces),
        " counts the faces of a cubed sphere, or tiles of a grid; stack it "
        "with rows and columns to one dimension of points that each have a latitude and a longitude "
        "(in xarray ds.stack(cell=(\"",
        name(faces), "\", \"", name(plane[0]), "\", \"", name(plane[1]),
        "\")).reset_index(\"cell\", drop=True)), which data.regrid brings to rows and columns, or remap "
        "it to latitudes and longitudes");
  }
  if (axes.horizontal()) return "";
  const FileVariable* const mapping = file_->grid_mapping(variable);
  if (mapping != nullptr && mapping->text("grid_mapping_name") == "healpix") {
    const std::int64_t sides = healpix_sides(variable);
    if (sides == 0)
      return concat("its grid mapping ", mapping->name,
                    " is HEALPix, and says neither refinement_level nor healpix_nside");
    return concat(
        "its grid mapping ", mapping->name, " is HEALPix of ", sides, " sides, which has ",
        12 * sides * sides, " pixels, and none of its dimensions (", join(variable.dimensions, ", "),
        ") has as many; of some of the pixels a variable along their dimension with the standard_name "
        "healpix_index says the numbers");
  }
  static constexpr std::array<std::string_view, 5> kCells = {"ncells", "nCells", "ncell", "cell", "cells"};
  for (int d = rank - 1; d >= 0; --d) {
    const bool named = std::ranges::find(kCells, name(d)) != kCells.end();
    if (!named && (d < rank - 1 || variable.text("CDI_grid_type") != "unstructured")) continue;
    return concat("its points along ", name(d),
                  " are cells whose latitudes and longitudes are not in this file; put them into it from the "
                  "file of the grid (cdo -f nc4 -setgrid,GRIDFILE IN OUT), or remap it to latitudes and "
                  "longitudes (cdo -f nc4 -remapcon,r360x180 -setgrid,GRIDFILE IN OUT)");
  }
  return "";
}

/// Of a mapping of HEALPix (CF: `refinement_level`; others: `healpix_nside`); 0 of others.
std::int64_t DataFile::healpix_sides(const FileVariable& variable) const {
  constexpr int kMostLevels = 14;
  const FileVariable* const mapping = file_->grid_mapping(variable);
  if (mapping == nullptr || mapping->text("grid_mapping_name") != "healpix") return 0;
  const auto number = [&](const char* attribute, double least, double most) -> std::optional<std::int64_t> {
    const auto found = mapping->numbers.find(attribute);
    if (found == mapping->numbers.end() || found->second.size() != 1) return std::nullopt;
    const double value = found->second[0];
    return value >= least && value <= most ? std::optional(std::llround(value)) : std::nullopt;
  };
  if (const auto level = number("refinement_level", 0, kMostLevels)) return std::int64_t{1} << *level;
  return number("healpix_nside", 1, std::int64_t{1} << kMostLevels).value_or(0);
}

/// The numbers of HEALPix's pixels along a dimension: its coordinate, or what is said to be a healpix_index.
/// Null where there are none, so that these are 0, 1, …
const FileVariable* DataFile::pixel_numbers(const std::string& dimension) const {
  for (const FileVariable& variable : file_->variables()) {
    if (!variable.numeric() || variable.dimensions != std::vector{dimension}) continue;
    if (variable.text("standard_name") == "healpix_index") return &variable;
  }
  const FileVariable* const own = coordinate_of(*file_, dimension);
  return own != nullptr && own->numeric() ? own : nullptr;
}

/// How many points each row of a reduced Gaussian grid has, as CDO writes it; null where there is none.
const FileVariable* DataFile::reduced_points() const {
  const FileVariable *points = file_->find("reduced_points"), *rows = file_->find("lat");
  const bool fits = points != nullptr && rows != nullptr && points->numeric() && rows->numeric() &&
                    points->shape.rank() == 1 && rows->shape == points->shape;
  return fits ? points : nullptr;
}

/// The dimension of points of a grid that the file names; -1 where it names none.
int DataFile::named_cells(const FileVariable& variable) const {
  static constexpr std::array<std::string_view, 6> kPixels = {"cell",   "cells", "pixel",
                                                              "pixels", "pix",   "healpix_index"};
  const std::int64_t sides = healpix_sides(variable);
  for (int d = variable.shape.rank() - 1; d >= 0; --d) {
    const std::string& dimension = variable.dimensions[static_cast<std::size_t>(d)];
    const std::string name = without_groups(dimension);
    if (sides > 0) {
      // Some of the pixels are known by their numbers alone.
      const FileVariable* const pixels = pixel_numbers(dimension);
      const bool numbered = pixels != nullptr && (pixels->text("standard_name") == "healpix_index" ||
                                                  std::ranges::find(kPixels, name) != kPixels.end());
      if (numbered || variable.shape[d] == 12 * sides * sides) return d;
    }
    if (name.starts_with("rgrid") && reduced_points() != nullptr) return d;
  }
  return -1;
}

/// @param d  the dimension of pixels.
ListedPlaces DataFile::places_of_healpix(const FileVariable& variable, int d) {
  const std::int64_t sides = healpix_sides(variable), all = 12 * sides * sides;
  const FileVariable& mapping = *file_->grid_mapping(variable);
  const std::string scheme = mapping.text("indexing_scheme"),
                    order = scheme.empty() ? mapping.text("healpix_order") : scheme;
  const bool nested = order == "nested" || order == "nest";
  if (!nested && order != "ring") {
    throw DataError(concat(file_->path(), " names the order \"", printable(order.substr(0, 60)),
                           "\" of HEALPix; ", scheme.empty() ? "healpix_order" : "indexing_scheme",
                           " must be \"ring\" or \"nested\""));
  }
  if (nested && (sides & (sides - 1)) != 0)
    throw DataError(
        concat(file_->path(), " has nested HEALPix of ", sides, " sides, which is no power of two"));
  const FileVariable* const said = pixel_numbers(variable.dimensions[static_cast<std::size_t>(d)]);
  if (said == nullptr) return healpix_places(sides, nested);
  std::vector<std::int64_t> pixels;
  for (const double number : numbers(*said)) {
    if (!(number >= 0 && number < static_cast<double>(all) && std::trunc(number) == number)) {
      throw DataError(concat(said->name, " in ", file_->path(), " holds ", number, ", and HEALPix of ", sides,
                             " sides has pixels from 0 to ", all - 1,
                             "; it must hold their numbers, or be left out where they are all and in order"));
    }
    pixels.push_back(std::llround(number));
  }
  return healpix_places(sides, nested, pixels);
}

std::optional<ListedPlaces> DataFile::named_places(const FileVariable& variable) {
  const int d = named_cells(variable);
  if (d < 0 || places(variable).first != nullptr) return std::nullopt;
  if (healpix_sides(variable) > 0) return places_of_healpix(variable, d);
  std::vector<std::int64_t> in_row;
  for (const double points : numbers(*reduced_points())) in_row.push_back(std::llround(points));
  const auto all = std::accumulate(in_row.begin(), in_row.end(), std::int64_t{0});
  if (all != variable.shape[d] || std::ranges::any_of(in_row, [](std::int64_t n) { return n < 1; })) {
    throw DataError(concat("the rows of reduced_points of ", file_->path(), " hold ", all, " points, and ",
                           variable.name, " ", variable.shape[d]));
  }
  return reduced_places(numbers(*file_->find("lat")), in_row);
}

std::vector<CoordinateDescription> DataFile::scalars_of(const FileVariable& variable,
                                                        const FileVariable* level) {
  static constexpr std::array kOfTime = {"time", "forecast_reference_time", "forecast_period"};
  const std::optional<CoordinateDescription> member = scalar_member();
  std::vector<CoordinateDescription> scalars;
  for (const FileVariable& candidate : file_->variables()) {
    if (!candidate.numeric() || candidate.shape.rank() != 0 || &candidate == level) continue;
    if (!names_coordinate(variable, candidate)) continue;
    const std::string standard_name = candidate.text("standard_name");
    if (std::ranges::find(kOfTime, standard_name) != kOfTime.end()) continue;
    if (counts_since(candidate.text("units"))) continue;
    CoordinateDescription scalar = describe_scalar(candidate);
    if (member && member->name == scalar.name) continue;
    const FileVariable* bounds = file_->find_from(candidate, candidate.text("bounds"));
    if (bounds != nullptr && bounds->numeric() && bounds->shape == Shape({2})) {
      scalar.bounds_name = without_groups(bounds->name);
      scalar.bounds = file_->read_all(*bounds);
    }
    scalars.push_back(std::move(scalar));
  }
  return scalars;
}

}  // namespace jigsaw::inline fields
