#pragma once
#include <optional>
#include <string>

namespace jigsaw::inline samples {

/// How many of a unit of pressure are 1 hPa; nothing for other units.
std::optional<double> units_per_hectopascal(const std::string& units);

}  // namespace jigsaw::inline samples
