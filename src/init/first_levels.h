#pragma once
#include <string>
#include <vector>

#include "array/shape.h"

namespace jigsaw::inline init {

/// Levels of a U-Net, the finest included.
struct FirstLevels {
  int count = 1;
  std::vector<Shape> strides = {};  ///< from the level above to each, of the finest 1; empty: 2 everywhere

  /// The strides as the key of the model takes them.
  std::string strides_text() const;
};

/// At most four, whose coarsest has at least four points along each dim.
FirstLevels even_levels(const Shape& space);

/// At most four, as nnU-Net plans them (Isensee et al. 2021, get_pool_and_conv_props): from level to level
/// those axes are halved that keep at least four points and whose points are less than twice as far apart
/// as those of the finest among them; one axis alone, if it keeps six.
/// @param spacing  of points along each dim; empty: alike.
FirstLevels levels_by_axis(const Shape& space, std::vector<double> spacing);

}  // namespace jigsaw::inline init
