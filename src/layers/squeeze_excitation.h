#pragma once
#include "layers/mixing.h"

namespace jigsaw::inline layers {

/// Squeeze and excitation (Hu et al. 2018, arXiv 1709.01507): y = x · σ(MLP(mean of x over space)), a factor
/// between 0 and 1 for each sample and channel; the MLP is linear, activation, linear.
struct SqueezeExcitationOptions {
  double hidden_ratio = 0.0625;
  ActivationKind activation = ActivationKind::kGelu;
};
void declare(Keys<SqueezeExcitationOptions>& keys);

/// Of a field [B, space…, C]. Parameters, with hidden size T = round(hidden_ratio × C), at least 1:
/// fc1.weight [T, C], fc1.bias [T], fc2.weight [C, T], fc2.bias [C], each as torch.nn.Linear starts them;
/// with "prelu" activation.slope [T].
class SqueezeExcitation : public Layer {
 public:
  SqueezeExcitation(const LayerSite& site, const SqueezeExcitationOptions& options);
  Variable run(Tape& tape, const Variable& x, const Variable& residual) const override;

 private:
  ChannelMixing factors_;
};

}  // namespace jigsaw::inline layers
