#include "files/field_attributes.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace jigsaw::inline files {

namespace {

constexpr std::array<std::string_view, 37> kOfTheFile = {
    // how numbers are packed, and which are valid
    "scale_factor", "add_offset", "missing_value", "valid_range", "valid_min", "valid_max", "actual_range",
    "fill_value", "unpacked_valid_range", "least_significant_digit", "number_of_significant_digits",
    // how they are stored; by dtype xarray makes what it reads booleans
    "dtype", "chunks", "chunksizes", "storage", "endianness", "CLASS", "NAME", "DIMENSION_LIST",
    "DIMENSION_LABELS", "REFERENCE_LIST",
    // other variables, and what coordinates say of themselves
    "coordinates", "bounds", "grid_mapping", "grid_mapping_name", "cell_measures", "ancillary_variables",
    "formula_terms", "geometry", "quantization", "mesh", "calendar", "axis", "positive", "spacing",
    // of ROMS and of MOM6
    "time", "time_avg_info"};

/// Of what cfgrib writes, what says which parameter it is.
constexpr std::array<std::string_view, 7> kOfGrib = {"GRIB_paramId", "GRIB_shortName", "GRIB_name",
                                                     "GRIB_units",   "GRIB_cfName",    "GRIB_cfVarName",
                                                     "GRIB_stepType"};

bool among(const auto& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

bool is_name_of_netcdf(const std::string& name) {
  constexpr std::size_t kLongest = 256;
  if (name.empty() || name.size() > kLongest || name.back() == ' ') return false;
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return is_letter(name[0]) &&
         std::ranges::all_of(name, [](char c) { return c > 0x1F && c < 0x7F && c != '/'; });
}

}  // namespace

bool is_of_field(const std::string& attribute) {
  if (!is_name_of_netcdf(attribute) || among(kOfTheFile, attribute)) return false;
  return !attribute.starts_with("GRIB_") || among(kOfGrib, attribute);
}

bool says_mapping(const std::string& attribute) {
  return !attribute.starts_with('_') && attribute != "missing_value";
}

}  // namespace jigsaw::inline files
