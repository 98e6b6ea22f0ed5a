#pragma once
#include "config/keys.h"
#include "layers/activation.h"

namespace jigsaw::inline layers {

/// torch.nn.RMSNorm over channels (Zhang and Sennrich 2019), its mean square that of all channels on every
/// mesh.
struct RmsNormOptions {
  double eps = 1e-6;
  ActivationKind activation = ActivationKind::kNone;
};
void declare(Keys<RmsNormOptions>& keys);

/// Parameter: weight [C] of ones.
class RmsNorm : public Layer {
 public:
  RmsNorm(const LayerSite& site, const RmsNormOptions& options);
  Variable run(Tape& tape, const Variable& x, const Variable& residual) const override;

 private:
  double eps_;
  Variable weight_;
  InnerActivation activation_;
};

}  // namespace jigsaw::inline layers
