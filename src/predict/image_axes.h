#pragma once
#include <string>
#include <vector>

#include "files/image_output.h"

namespace jigsaw::inline predict {

/// What stands along the dims of a data set of images.
struct ImageAxes {
  std::vector<std::string> names;  ///< of all its dims
  /// Those that bear the name of a dim, and latitudes and longitudes that have some of its dims, in physical
  /// units.
  std::vector<OutputCoordinate> coordinates;
};

/// Reads them from a NetCDF file or a Zarr store; nothing where the file does not name the data set's dims.
/// What cannot be read is left out, for nothing is computed with it.
ImageAxes read_image_axes(const std::string& path, const std::string& data_set);

}  // namespace jigsaw::inline predict
