#pragma once
#include <string>

#include "files/file_variable.h"

namespace jigsaw::inline files {

/// The attribute of variables of GRIB messages that says over how many hours each value was summed, averaged
/// or compared; no variable of values at a time has it.
inline constexpr const char* kTimeRange = "GRIB_lengthOfTimeRange";

/// Those that say, as cfgrib calls them, on which kind of level and for which kind of step such variables
/// are.
inline constexpr const char* kTypeOfLevel = "GRIB_typeOfLevel";
inline constexpr const char* kStepType = "GRIB_stepType";

/// What `cell_methods` (CF, section 7.3) says of how values were made along a dimension: "mean" of "area:
/// time: mean (interval: 1 hour)", "maximum within days, mean over days" of both; "" where it says nothing.
std::string method_along(const std::string& cell_methods, const std::string& dimension);

/// Hours over which the values of a variable of GRIB messages are; 0 where nothing says it.
double time_range(const FileVariable& variable);
/// Whether hours are alike: equal, or those of a month each, or of a year.
bool same_time_range(double hours, double others);

}  // namespace jigsaw::inline files
