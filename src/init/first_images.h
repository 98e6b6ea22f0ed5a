#pragma once
#include <string>
#include <vector>

#include "init/first_configuration.h"

namespace jigsaw::inline init {

/// What first_configuration() writes for images and volumes.
/// @param paths  of the files.
FirstConfiguration first_images(const FirstOptions& options, const std::vector<std::string>& paths,
                                Task task);

}  // namespace jigsaw::inline init
