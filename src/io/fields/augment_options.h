#pragma once
#include <map>
#include <string>
#include <vector>

#include "config/keys.h"

namespace jigsaw::inline fields {

/// The configuration's section `data.augment`: how training samples of images are changed at random.
struct AugmentOptions {
  double probability = 1.0;
  std::map<std::string, double> probabilities;  ///< of single changes, by their key
  double foreground = 0.0;
  std::vector<double> rotation;    ///< degrees; about each axis, or one number for all; empty: none
  std::vector<double> scale;       ///< [least, most]; empty: none
  double elastic = 0.0;            ///< deviation of displacements in points
  double elastic_spacing = 8.0;    ///< points from one displacement to the next
  std::vector<double> brightness;  ///< [least, most]; empty: none
  double shift = 0.0;              ///< largest, either way, in deviations of the variable
  std::vector<double> gamma;       ///< [least, most]; empty: none
  double noise = 0.0;              ///< largest deviation, in deviations of the variable
  double blur = 0.0;               ///< largest deviation in points

  bool operator==(const AugmentOptions&) const = default;
  double probability_of(const std::string& change) const {
    const auto own = probabilities.find(change);
    return own == probabilities.end() ? probability : own->second;
  }
  /// Whether inputs alone are changed, too, which are then of another kind than targets.
  bool changes_inputs() const {
    return !brightness.empty() || shift > 0 || !gamma.empty() || noise > 0 || blur > 0;
  }
  /// Whether points are taken from between those of the image.
  bool warps() const { return !rotation.empty() || !scale.empty() || elastic > 0; }
};
void declare(Keys<AugmentOptions>& keys);

}  // namespace jigsaw::inline fields
