#pragma once
#include <memory>
#include <string>

#include "files/variable_file.h"

namespace jigsaw::inline files {

/// The version of ecCodes, through which this build reads GRIB files (JIGSAW_GRIB); "" where it does not:
/// CMake chooses one of two sources behind this header.
std::string eccodes_version();
/// @param external  not asked: such a file has no links. @throws DataError  also in a build without ecCodes.
std::unique_ptr<VariableFile> open_grib(const std::string& path, External external);
/// The file that another rank described.
std::unique_ptr<VariableFile> open_described_grib(const FileDescription& known, External external);

}  // namespace jigsaw::inline files
