#pragma once
#include <string>

namespace jigsaw::inline files {

/// Throws for a file that a library could not write, and says only that, or something else ("Permission
/// denied", of HDF5): a DiskError where disk_error_behind() knows one, with its reason, else a DataError with
/// `otherwise`.
[[noreturn]] void refuse_unwritten(const std::string& path, const std::string& otherwise);

}  // namespace jigsaw::inline files
