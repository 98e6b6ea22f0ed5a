#pragma once
#include "config/keys.h"
#include "layers/activation.h"

namespace jigsaw::inline layers {

/// torch.nn.Linear over channels: y[…, n] = Σ_k x[…, k] weight[n, k] + bias[n].
struct LinearOptions {
  std::int64_t features = 0;
  bool bias = true;
};
void declare(Keys<LinearOptions>& keys);

/// Parameters: weight [N, K], bias [N], both U(±1/√K).
class Linear : public Layer {
 public:
  Linear(const LayerSite& site, const LinearOptions& options);
  using Layer::run;
  Variable run(Tape& tape, const Variable& x, const Variable& residual) const override;
  /// With an activation and dropout behind the bias.
  Variable run(Tape& tape, const Variable& x, const InnerActivation& activation, double dropout) const;

 private:
  Variable product(Tape& tape, const Variable& x) const;

  std::string path_;
  Variable weight_, bias_;
};

}  // namespace jigsaw::inline layers
