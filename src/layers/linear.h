#pragma once
#include "config/keys.h"
#include "layers/activation.h"

namespace jigsaw::inline layers {

/// torch.nn.Linear over channels: y[…, n] = Σ_k x[…, k] weight[n, k] + bias[n].
struct LinearOptions {
  std::int64_t features = 0;
  bool bias = true;
  bool zero_start = false;
};
void declare(Keys<LinearOptions>& keys);

/// Hidden numbers are cut in these units: in eights where there are 4,096 and more, so that rows of bf16 fill
/// multiples of 16 bytes, which products on GPUs are fast with, on all ranks but one at most; fewer are cut
/// anywhere, for then ranks have the same.
Letters hidden_units(char letter, std::int64_t size);

/// Parameters: weight [N, K], bias [N], both U(±1/√K), or zeros.
class Linear : public Layer {
 public:
  Linear(const LayerSite& site, const LinearOptions& options);
  using Layer::run;
  Variable run(Tape& tape, const Variable& x, const Variable& residual) const override;
  /// With an activation and dropout behind the bias: of hidden numbers.
  Variable run(Tape& tape, const Variable& x, const InnerActivation& activation, double dropout) const;

 private:
  Variable product(Tape& tape, const Variable& x, const Letters& units = {}) const;

  std::string path_;
  Variable weight_, bias_;
};

}  // namespace jigsaw::inline layers
