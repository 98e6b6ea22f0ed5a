#pragma once
#include <optional>
#include <string>

#include "config/keys.h"
#include "fields/transform.h"

namespace jigsaw::inline fields {

/// An entry of `data.intensities`: what becomes of the values of one input of images. As MONAI's
/// ScaleIntensityRange with `clip` and nnU-Net's CTNormalization do it.
struct IntensityOptions {
  ValueRange clip;  ///< values beyond count as its ends, in the unit of the files
  /// What the input, transformed, is normalised by, (x − mean) / deviation, in place of what data.intensity
  /// says; both or none.
  std::optional<double> mean = {}, deviation = {};

  bool operator==(const IntensityOptions&) const = default;
  /// "clip(x, -1000, 400)", "" without a clip: by which statistics are known to be of the same values.
  std::string clip_text() const;
};
void declare(Keys<IntensityOptions>& keys);

}  // namespace jigsaw::inline fields
