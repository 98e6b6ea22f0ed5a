#pragma once
#include <cstdint>
#include <string>
#include <utility>

#include "files/variable_file.h"
#include "report/map_picture.h"

namespace jigsaw::inline report {

// Planes of variables in files that predict and evaluate write.

/// Of the last two dims of a variable: latitudes and longitudes, or rows and columns of a projection.
PlaneGrid plane_grid(VariableFile& file, const FileVariable& variable);

/// Which one is shown along a dimension before rows, and how it is called. Of levels the one that is nearest
/// to 500, of members the first, of others the middle.
std::pair<std::int64_t, std::string> place_along(VariableFile& file, const std::string& dimension,
                                                 std::int64_t count);

/// "6 h" of each of a file's leads.
std::vector<std::string> lead_titles(VariableFile& file);

}  // namespace jigsaw::inline report
