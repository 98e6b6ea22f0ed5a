#pragma once
#include <string>
#include <vector>

namespace jigsaw::inline samples {

/// Other usual names of a variable: those of GRIB and the Climate Data Store, of WeatherBench 2 and of CMIP
/// for the same quantity in the same unit. Empty for others.
const std::vector<std::string>& other_names(const std::string& variable);

}  // namespace jigsaw::inline samples
