#pragma once
#include <optional>
#include <string>
#include <vector>

#include "config/keys.h"

namespace jigsaw::inline optim {

/// Parameters whose names match a pattern train with values of their own.
struct ParameterGroupOptions {
  std::string match;
  std::optional<double> learning_rate;
  std::optional<double> weight_decay;
  bool frozen = false;
};
void declare(Keys<ParameterGroupOptions>& keys);

/// What every type of optimizer takes; the struct of a type derives from it.
struct OptimizerOptions {
  double learning_rate = 1e-3;
  double weight_decay = 0.01;
  bool decoupled_weight_decay = true;
  double clip_norm = 1.0;
  double ema_decay = 0.0;
  std::vector<ParameterGroupOptions> groups;
};

/// Declares those keys in the table of a type.
template <std::derived_from<OptimizerOptions> O>
void declare_common(Keys<O>& keys) {
  keys.add("learning_rate", &O::learning_rate).changeable().at_least(0).doc("Step size after warm-up.");
  keys.add("weight_decay", &O::weight_decay).at_least(0).doc("Decay of the parameters per step and rate.");
  keys.add("decoupled_weight_decay", &O::decoupled_weight_decay)
      .doc(
          "Parameters decay apart from the gradient's update; false: weight_decay times the parameter is "
          "added to its gradient, once that is clipped, as in torch.optim.Adam and torch.optim.SGD.");
  keys.add("clip_norm", &O::clip_norm)
      .changeable()
      .at_least(0)
      .doc("Gradients of a larger global norm are scaled down to it; 0: never.");
  keys.add("ema_decay", &O::ema_decay)
      .at_least(0)
      .below(1)
      .doc(
          "Decay of an exponential moving average of the parameters, which validation, evaluate and predict "
          "then use; "
          "of update t at most (1 + t) / (10 + t), so that the begin is forgotten; 0: none.");
  keys.add("groups", &O::groups).doc("Parameters that train with values of their own.");
}

}  // namespace jigsaw::inline optim
