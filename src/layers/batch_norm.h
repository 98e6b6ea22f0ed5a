#pragma once
#include "config/keys.h"
#include "layers/activation.h"

namespace jigsaw::inline layers {

/// torch.nn.SyncBatchNorm (torch.nn.BatchNorm over the global batch): in training each channel is normalised
/// over the points of all samples of the batch, otherwise with the running statistics.
struct BatchNormOptions {
  double eps = 1e-5;
  double momentum = 0.1;
  ActivationKind activation = ActivationKind::kNone;
};
void declare(Keys<BatchNormOptions>& keys);

/// Parameters: weight [C] of ones, bias [C] of zeros, and, followed rather than trained, running_mean [C] of
/// zeros and running_var [C] of ones (the unbiased variance). Each optimizer step takes running statistics
/// momentum·(batch − running) further, the mean over several uses in one step (micro-batches, rollouts).
class BatchNorm : public Layer {
 public:
  BatchNorm(const LayerSite& site, const BatchNormOptions& options);
  Variable run(Tape& tape, const Variable& x, const Variable& residual) const override;

 private:
  double eps_;
  Variable weight_, bias_, running_mean_, running_variance_;
  InnerActivation activation_;
};

}  // namespace jigsaw::inline layers
