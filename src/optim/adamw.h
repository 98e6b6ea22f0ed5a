#pragma once
#include <memory>

#include "optim/options.h"
#include "optim/update_rule.h"

namespace jigsaw::inline optim {

struct AdamWOptions : OptimizerOptions {
  std::vector<double> betas = {0.9, 0.999};
  double eps = 1e-8;
};
void declare(Keys<AdamWOptions>& keys);

/// AdamW with decoupled decay, as torch.optim.AdamW; with decay in the gradient torch.optim.Adam.
std::unique_ptr<UpdateRule> make_rule(const AdamWOptions& options);

}  // namespace jigsaw::inline optim
