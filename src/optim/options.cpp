#include "optim/options.h"

#include "config/config.h"

namespace jigsaw::inline optim {

void declare(Keys<ParameterGroupOptions>& keys) {
  using O = ParameterGroupOptions;
  keys.add("match", &O::match)
      .required()
      .not_empty()
      .doc(
          "Pattern of parameter names, where * stands for any characters. The first group that matches "
          "counts.");
  keys.add("learning_rate", &O::learning_rate)
      .at_least(0)
      .counts_where(here("frozen").is(false))
      .doc("In place of optimizer.learning_rate; scheduled like it.");
  keys.add("weight_decay", &O::weight_decay)
      .at_least(0)
      .counts_where(here("frozen").is(false))
      .doc("In place of optimizer.weight_decay.");
  keys.add("frozen", &O::frozen).doc("Whether these parameters stay as they are.");
}

}  // namespace jigsaw::inline optim
