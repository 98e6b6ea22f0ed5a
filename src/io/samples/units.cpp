#include "samples/units.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace jigsaw::inline samples {

std::optional<double> units_per_hectopascal(const std::string& units) {
  static const std::vector<std::pair<std::vector<std::string>, double>> kUnits = {
      {{"hPa", "hectopascal", "hectopascals", "millibars", "millibar", "mbar", "mb"}, 1.0},
      {{"Pa", "pascal", "pascals", "Pascal"}, 100.0},
      {{"kPa", "kilopascal"}, 0.1},
      {{"bar"}, 0.001}};
  for (const auto& [names, count] : kUnits) {
    if (std::find(names.begin(), names.end(), units) != names.end()) return count;
  }
  return std::nullopt;
}

}  // namespace jigsaw::inline samples
