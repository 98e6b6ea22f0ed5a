#pragma once
#include "layers/spatial_keys.h"

namespace jigsaw::inline layers {

/// torch.nn.Upsample, and interpolate() to fewer points: nearest, nearest-exact, or linear with align_corners
/// off.
struct UpsampleOptions {
  Extents scale;  ///< points of the result for each point; empty: by size
  Extents size;   ///< points of the result; with a scale: those that are kept
  Interpolation mode = Interpolation::kNearest;
  Edges padding_mode = {Edge::kReplicate};
};
void declare(Keys<UpsampleOptions>& keys);

/// No parameters.
class Upsample : public Layer {
 public:
  Upsample(const LayerSite& site, const UpsampleOptions& options);
  Variable run(Tape& tape, const Variable& x, const Variable& residual) const override;

 private:
  Interpolation mode_;
  Shape grid_;
  Padding edges_;
};

/// torch.nn.functional.pad of the spatial dims.
struct PadOptions {
  Extents low = {0};
  Extents high = {0};
  Edges padding_mode = {Edge::kZero};
};
void declare(Keys<PadOptions>& keys);

/// No parameters.
class Pad : public Layer {
 public:
  Pad(const LayerSite& site, const PadOptions& options);
  Variable run(Tape& tape, const Variable& x, const Variable& residual) const override;

 private:
  Padding padding_;
};

}  // namespace jigsaw::inline layers
