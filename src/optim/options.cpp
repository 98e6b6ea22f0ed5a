#include "optim/options.h"

#include "config/config.h"

namespace jigsaw {

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
      .doc("In place of optimizer.learning_rate; scheduled like it.");
  keys.add("weight_decay", &O::weight_decay).at_least(0).doc("In place of optimizer.weight_decay.");
  keys.add("frozen", &O::frozen).doc("Whether these parameters stay as they are.");
}

void declare(Keys<OptimizerOptions>& keys) {
  using O = OptimizerOptions;
  keys.choice("type", &O::type, {{"adamw", OptimizerType::kAdamw, "AdamW, as torch.optim.AdamW."}})
      .doc("The update rule.");
  keys.add("learning_rate", &O::learning_rate).changeable().at_least(0).doc("Step size after warm-up.");
  keys.add("betas", &O::betas).length(2).at_least(0).below(1).doc("Decay of the first and second moment.");
  keys.add("eps", &O::eps).above(0).doc("Added to the root of the second moment.");
  keys.add("weight_decay", &O::weight_decay)
      .at_least(0)
      .doc("Decoupled decay of the parameters per step and rate.");
  keys.add("clip_norm", &O::clip_norm)
      .changeable()
      .at_least(0)
      .doc("Gradients of a larger global norm are scaled down to it; 0: never.");
  keys.add("ema_decay", &O::ema_decay)
      .at_least(0)
      .below(1)
      .doc("Decay of an exponential moving average of the parameters, which validation then uses; 0: none.");
  keys.add("groups", &O::groups).doc("Parameters that train with values of their own.");
}

void declare(Keys<ScheduleOptions>& keys) {
  using O = ScheduleOptions;
  keys.choice("type", &O::type,
              {{"cosine", ScheduleType::kCosine, "Half a cosine from the learning rate to the final one."},
               {"constant", ScheduleType::kConstant, "The learning rate throughout."}})
      .doc("How the learning rate goes on after warm-up.");
  keys.add("warmup_steps", &O::warmup_steps)
      .at_least(0)
      .doc("Steps over which the rate rises linearly to its value.");
  keys.add("final_learning_rate", &O::final_learning_rate)
      .at_least(0)
      .doc("Rate at the last step of a cosine.");
}

}  // namespace jigsaw
