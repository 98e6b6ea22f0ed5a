#pragma once
#include <vector>

#include "config/keys.h"

namespace jigsaw::inline fields {

/// The configuration's section `data.augment`: how training samples of images are changed at random.
struct AugmentOptions {
  double probability = 1.0;
  double foreground = 0.0;
  std::vector<double> rotation;  ///< degrees; about each axis, or one number for all; empty: none
  std::vector<double> scale;     ///< [least, most]; empty: none
  double elastic = 0.0;          ///< deviation of displacements in points
  double elastic_spacing = 8.0;  ///< points from one displacement to the next
  std::vector<double> gamma;     ///< [least, most]; empty: none
  double noise = 0.0;            ///< largest deviation, in deviations of the variable
  double blur = 0.0;             ///< largest deviation in points

  bool operator==(const AugmentOptions&) const = default;
  /// Whether points are taken from between those of the image.
  bool warps() const { return !rotation.empty() || !scale.empty() || elastic > 0; }
};
void declare(Keys<AugmentOptions>& keys);

}  // namespace jigsaw::inline fields
