#pragma once
#include <string>

namespace jigsaw::inline files {

/// A text among the attributes of a group of an HDF5 file; "" where there is none.
/// @param group  "boundary_conditions/x_periodic".
std::string hdf5_group_text(const std::string& path, const std::string& group, const std::string& attribute);

}  // namespace jigsaw::inline files
