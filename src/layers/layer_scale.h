#pragma once
#include "config/keys.h"
#include "layers/layer.h"

namespace jigsaw::inline layers {

/// Layer scale (Touvron et al. 2021, arXiv 2103.17239): y = x · weight, a factor for each channel.
struct LayerScaleOptions {
  double initial = 1e-4;
};
void declare(Keys<LayerScaleOptions>& keys);

/// Parameters: weight [C], `initial` everywhere.
class LayerScale : public Layer {
 public:
  LayerScale(const LayerSite& site, const LayerScaleOptions& options);
  Variable run(Tape& tape, const Variable& x, const Variable& residual) const override;

 private:
  Variable weight_;
};

}  // namespace jigsaw::inline layers
