#pragma once
#include <string_view>

namespace jigsaw::inline files {

/// Whether CF's units of a variable say that it holds latitudes ("degrees_north", "degreeN", …).
bool counts_north(std::string_view units);
/// The same of longitudes ("degrees_east", …).
bool counts_east(std::string_view units);
/// Whether units are degrees in any spelling ("deg", "Degrees North", "°"), or none is given.
bool counts_degrees(std::string_view units);
/// Whether units are radians in any spelling.
bool counts_radians(std::string_view units);
/// Whether units are those of a duration: "hours", "day", "ns".
bool counts_time(std::string_view units);
/// Whether units are those of times with dates: "hours since …", in letters of either case, or "day as
/// %Y%m%d.%f".
bool counts_since(std::string_view units);

}  // namespace jigsaw::inline files
