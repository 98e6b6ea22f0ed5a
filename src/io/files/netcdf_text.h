#pragma once
#include <string>

namespace jigsaw::inline files {

/// An attribute of a whole NetCDF file that is a text; "" where it has none of this name. @throws DataError
std::string text_of_netcdf(const std::string& path, const std::string& attribute);

}  // namespace jigsaw::inline files
