#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "files/image_output.h"

namespace jigsaw::inline images {

/// What stands along the dims of a data set of images, all names with their groups, and what the data set
/// says of itself.
struct ImageAxes {
  std::vector<std::string> names;     ///< of all its dims; none where the file does not name them
  std::vector<std::int64_t> extents;  ///< of those that have names
  /// Those that bear the name of a dim; latitudes and longitudes that have some of its dims; and times along
  /// one dim or none: in physical units, as read_coordinate() gives them.
  std::vector<OutputCoordinate> coordinates;
  /// The attributes that say what it is (is_of_field()).
  std::map<std::string, std::string> texts;
  std::map<std::string, std::vector<double>> numbers;
  /// What says by its attributes how the points of its projection lie on the earth, a number of no meaning.
  std::optional<OutputCoordinate> mapping;

  /// The coordinate that bears the name of a dim; null where there is none.
  const OutputCoordinate* along(const std::string& dimension) const;
};

/// Reads them from a NetCDF file or a Zarr store; nothing where the file does not name the data set's dims.
/// Of coordinates those that stand in the group of the data set or in those around it. What cannot be read
/// is left out, for nothing is computed with it.
/// @param most_dims  of the coordinates that are read.
ImageAxes read_image_axes(const std::string& path, const std::string& data_set,
                          std::size_t most_dims = std::numeric_limits<std::size_t>::max());

/// The coordinates of some of the entries along a dim.
/// @param dimension  number of the dim. @param entries  in the order in which they are to stand.
ImageAxes chosen_along(ImageAxes axes, std::size_t dimension, const std::vector<std::int64_t>& entries);

/// What stands along the other dims.
ImageAxes without_dimension(ImageAxes axes, std::size_t dimension);

}  // namespace jigsaw::inline images
