#include "layers/linear.h"

#include "config/config.h"

namespace jigsaw {

void declare(Keys<LinearOptions>& keys) {
  keys.add("features", &LinearOptions::features).required().at_least(1).doc("Channels of the result.");
  keys.add("bias", &LinearOptions::bias).doc("Whether a learned bias is added.");
}

Linear::Linear(const LayerSite& site, const LinearOptions& options)
    : Layer({site.input.space, options.features}), path_(site.path) {
  const Initial initial = Initial::fan_in(site.input.channels);
  weight_ = site.parameter("weight", {options.features, site.input.channels}, initial);
  if (options.bias) bias_ = site.parameter("bias", {options.features}, initial);
}

Variable Linear::run(Tape& tape, const Variable& x, const Variable& residual) const {
  return run(tape, x, residual, Activation::kNone, 0.0);
}

Variable Linear::run(Tape& tape, const Variable& x, const Variable& residual, Activation activation,
                     double dropout) const {
  const int space = x.shape().rank() - 2;
  const std::string in = field_letters(space, 'k'), out = field_letters(space, 'n');
  Variable y = contract(tape, in + ",nk->" + out, x, weight_);
  if (!bias_.defined() && !residual.defined() && activation == Activation::kNone && dropout == 0) return y;
  return pointwise(tape, y, {out, bias_, "n", residual, activation, dropout, path_});
}

}  // namespace jigsaw
