#pragma once
#include "config/keys.h"
#include "layers/activation.h"

namespace jigsaw::inline layers {

/// torch.nn.LayerNorm over channels, its statistics those of all channels on every mesh.
struct LayerNormOptions {
  double eps = 1e-5;
  ActivationKind activation = ActivationKind::kNone;
};
void declare(Keys<LayerNormOptions>& keys);

/// Parameters: weight [C] of ones, bias [C] of zeros.
class LayerNorm : public Layer {
 public:
  LayerNorm(const LayerSite& site, const LayerNormOptions& options);
  Variable run(Tape& tape, const Variable& x, const Variable& residual) const override;

 private:
  double eps_;
  Variable weight_, bias_;
  InnerActivation activation_;
};

}  // namespace jigsaw::inline layers
