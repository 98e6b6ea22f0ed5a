#include "files/coordinate_units.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/lower_case.h"

namespace jigsaw::inline files {

namespace {

/// "degree_N" for 'N' and "north".
bool is_degrees(std::string_view units, std::string_view word, std::string_view letter) {
  if (!units.starts_with("degree")) return false;
  units.remove_prefix(std::string_view("degree").size());
  if (units.starts_with('s')) units.remove_prefix(1);
  if (units == letter) return true;
  if (!units.starts_with('_')) return false;
  units.remove_prefix(1);
  return units == word || units == letter;
}

}  // namespace

bool counts_north(std::string_view units) {
  return is_degrees(units, "north", "N");
}

bool counts_east(std::string_view units) {
  return is_degrees(units, "east", "E");
}

bool counts_degrees(std::string_view units) {
  if (units.find_first_not_of(' ') == std::string_view::npos) return true;
  return to_lower(units).find("deg") != std::string::npos || units.find("°") != std::string_view::npos;
}

bool counts_radians(std::string_view units) {
  const std::string lower = to_lower(units);
  return lower == "radian" || lower == "radians" || lower == "rad";
}

bool counts_time(std::string_view units) {
  static constexpr std::array kUnits = {
      "nanosecond", "microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month",
      "ns",         "us",          "ms",          "s",      "sec",    "min",  "h",   "hr",   "d"};
  std::string lower = to_lower(units);
  if (lower.size() > 3 && lower.ends_with('s')) lower.pop_back();
  return std::ranges::find(kUnits, lower) != kUnits.end();
}

bool counts_since(std::string_view units) {
  return to_lower(units).find(" since ") != std::string::npos || units == "day as %Y%m%d.%f";
}

}  // namespace jigsaw::inline files
