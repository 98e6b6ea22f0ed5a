#pragma once
#include <set>
#include <string>
#include <vector>

#include "fields/file_set.h"
#include "init/first_configuration.h"

namespace jigsaw::inline init {

/// What first_configuration() writes for fields on latitude and longitude.
/// @param paths   of the files, which `files` has opened.
/// @param bounds  names of variables that hold the limits of cells.
FirstConfiguration first_forecast(const FirstOptions& options, const std::vector<std::string>& paths,
                                  FileSet& files, const std::set<std::string>& bounds);

}  // namespace jigsaw::inline init
