#pragma once
#include <memory>

#include "optim/options.h"
#include "optim/update_rule.h"

namespace jigsaw::inline optim {

struct SgdOptions : OptimizerOptions {
  double momentum = 0.9;
  bool nesterov = false;
};
void declare(Keys<SgdOptions>& keys);

/// Gradient descent with momentum: v ← momentum·v + g, p ← p·(1 − rate·decay) − rate·v, or with Nesterov's
/// momentum − rate·(g + momentum·v). As torch.optim.SGD (Sutskever et al. 2013), but that the decay is
/// decoupled, as AdamW's, unless `decoupled_weight_decay` is false.
std::unique_ptr<UpdateRule> make_rule(const SgdOptions& options);

}  // namespace jigsaw::inline optim
