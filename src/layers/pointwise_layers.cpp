#include "layers/pointwise_layers.h"

#include "config/config.h"

namespace jigsaw::inline layers {

void declare(Keys<ActivationOptions>&) {}

void declare(Keys<DropoutOptions>& keys) {
  keys.add("probability", &DropoutOptions::probability)
      .at_least(0)
      .below(1)
      .doc("Probability that an element is set to zero in training.");
}

Variable DropoutLayer::run(Tape& tape, const Variable& x, const Variable& residual) const {
  return pointwise(
      tape, x,
      {field_letters(x.shape().rank() - 2, 'c'), {}, "", residual, Activation::kNone, probability_, path_});
}

void declare(Keys<DropPathOptions>& keys) {
  keys.add("probability", &DropPathOptions::probability)
      .at_least(0)
      .below(1)
      .doc("Probability that a sample is set to zero in training.");
}

Variable DropPath::run(Tape& tape, const Variable& x, const Variable& residual) const {
  return pointwise(tape, x,
                   {field_letters(x.shape().rank() - 2, 'c'),
                    {},
                    "",
                    residual,
                    Activation::kNone,
                    probability_,
                    path_,
                    true});
}

}  // namespace jigsaw::inline layers
