#pragma once
#include "config/keys.h"
#include "layers/activation.h"

namespace jigsaw::inline layers {

/// torch.nn.GroupNorm: the points of each sample and group of channels are normalised together, over the
/// whole grid on every mesh.
struct GroupNormOptions {
  std::int64_t groups = 0;
  double eps = 1e-5;
  ActivationKind activation = ActivationKind::kNone;
};
void declare(Keys<GroupNormOptions>& keys);

/// Parameters: weight [C] of ones, bias [C] of zeros.
class GroupNorm : public Layer {
 public:
  GroupNorm(const LayerSite& site, const GroupNormOptions& options);
  Variable run(Tape& tape, const Variable& x, const Variable& residual) const override;

 private:
  std::int64_t groups_;
  double eps_;
  Variable weight_, bias_;
  InnerActivation activation_;
};

/// torch.nn.InstanceNorm with affine on: group norm with a group for each channel.
struct InstanceNormOptions {
  double eps = 1e-5;
  ActivationKind activation = ActivationKind::kNone;
};
void declare(Keys<InstanceNormOptions>& keys);

class InstanceNorm : public GroupNorm {
 public:
  InstanceNorm(const LayerSite& site, const InstanceNormOptions& options)
      : GroupNorm(site, {site.input.channels, options.eps, options.activation}) {}
};

}  // namespace jigsaw::inline layers
