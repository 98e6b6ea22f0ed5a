#pragma once
#include "config/keys.h"
#include "layers/layer.h"

namespace jigsaw {

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
  /// With an activation and dropout behind the bias, in the same pass.
  Variable run(Tape& tape, const Variable& x, const Variable& residual, Activation activation,
               double dropout) const;

 private:
  std::string path_;
  Variable weight_, bias_;
};

}  // namespace jigsaw
