#pragma once
#include <string>

namespace jigsaw::inline files {

/// Why a file cannot be written, where a library says only that, or something else ("Permission denied", of
/// HDF5): "No space left on device" when the disk of its folder is full, else `otherwise`.
std::string why_unwritable(const std::string& path, const std::string& otherwise);

}  // namespace jigsaw::inline files
