#pragma once
#include <string>
#include <vector>

#include "train/first_configuration.h"

namespace jigsaw::inline train {

/// What first_configuration() writes for images and volumes.
/// @param paths  of the files.
FirstConfiguration first_images(const FirstOptions& options, const std::vector<std::string>& paths,
                                Task task);

}  // namespace jigsaw::inline train
