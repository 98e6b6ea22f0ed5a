#include "fields/intensity_options.h"

#include <cmath>

#include "base/text.h"
#include "config/config.h"

namespace jigsaw::inline fields {

std::string IntensityOptions::clip_text() const {
  const auto text = [](double end) {
    if (!std::isfinite(end)) return std::string("null");
    return end == std::floor(end) ? concat(std::llround(end)) : Json(end).dump();
  };
  return clip.bounded() ? concat("clip(x, ", text(clip.low), ", ", text(clip.high), ")") : "";
}

void declare(Keys<IntensityOptions>& keys) {
  using O = IntensityOptions;
  keys.add("clip", &O::clip)
      .doc(
          "Values beyond the range, as [-1000, 400] of Hounsfield units, count as its ends, before "
          "data.transforms. Statistics are of what comes out.");
  keys.add("mean", &O::mean)
      .doc(
          "What is taken out of the values, behind data.transforms, in place of what data.intensity says; "
          "given with deviation, or not.");
  keys.add("deviation", &O::deviation)
      .above(0)
      .doc(
          "What the rest is divided by. With mean −57 and deviation 221 the values −57 and 164 become 0 and "
          "1.");
  keys.check([](const O& o, const Place& at) {
    if (o.mean && !o.deviation) at.error("deviation", "must be given with mean");
    if (o.deviation && !o.mean) at.error("mean", "must be given with deviation");
    if (!o.mean && !o.clip.bounded()) at.error("must have clip, or mean and deviation");
  });
}

}  // namespace jigsaw::inline fields
