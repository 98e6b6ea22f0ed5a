#pragma once
#include <optional>
#include <string>

#include "files/variable_file.h"

namespace jigsaw::inline files {

/// The version of ecCodes, through which this build reads GRIB files (JIGSAW_GRIB); "" where it does not:
/// CMake chooses one of two sources behind this header.
std::string eccodes_version();
/// None where this build does not read it.
std::optional<FileFormat> grib_format();

}  // namespace jigsaw::inline files
