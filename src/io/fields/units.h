#pragma once
#include <optional>
#include <string>

namespace jigsaw::inline fields {

/// How many of a unit of pressure are 1 hPa; nothing for other units.
std::optional<double> units_per_hectopascal(const std::string& units);

/// A level in the units in which levels are named: hPa of pressures, m of lengths; others stay as they are.
double in_level_units(double level, const std::string& units);

/// Whether a unit is one of length in which heights, depths and distances on projections are given.
bool is_length(const std::string& units);

/// Whether two texts are one unit in the notations of GRIB, CF and UDUNITS: "m s**-1", "m s-1", "m/s" and
/// "m.s^-1". Names of UDUNITS for common units are one ("K", "kelvin", "degK"; "hPa", "mbar"), nothing is
/// scaled; what is no product of powers of names ("(0 - 1)") is the same only letter by
/// letter.
bool same_unit(const std::string& a, const std::string& b);

/// How values go from a unit to another one.
struct UnitConversion {
  double factor = 1, offset = 0;
  double operator()(double value) const { return value * factor + offset; }
  bool operator==(const UnitConversion&) const = default;
};
/// Of units of one quantity by their definitions in SI, as UDUNITS converts them: "degC" to "K", "mm" to "m",
/// "km h-1" or "kt" to "m s-1", "%" to "1" or "(0 - 1)". Degrees in products, as in "degC m-1", are
/// differences. What lies on an area is water where the other unit is of its depth: 1 kg m-2 is 1 mm (of
/// 1,000 kg m-3). Nothing where one is not known or they are no units of one quantity; of one unit
/// (same_unit()) that which leaves values as they are.
std::optional<UnitConversion> unit_conversion(const std::string& from, const std::string& to);

/// @param what  is in the unit `there`, and compared with data in `wanted`; "" where files say none.
/// @throws DataError  for different units
/// @return  a sentence where files do not say what is in the unit that data are in, else "".
std::string require_same_unit(const std::string& what, const std::string& there, const std::string& wanted);

}  // namespace jigsaw::inline fields
