#pragma once
#include <string>
#include <vector>

namespace jigsaw::inline fields {

/// Other usual names of a variable: those of GRIB and the Climate Data Store, of WeatherBench 2 and of CMIP
/// for the same quantity in the same unit. Empty for others.
const std::vector<std::string>& other_names(const std::string& variable);

/// Whether a variable is by its usual names a component of a horizontal vector: "u", "v10",
/// "10m_u_component_of_wind".
bool is_vector_component(const std::string& variable);

}  // namespace jigsaw::inline fields
