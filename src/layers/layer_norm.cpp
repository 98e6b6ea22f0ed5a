#include "layers/layer_norm.h"

#include "config/config.h"

namespace jigsaw::inline layers {

void declare(Keys<LayerNormOptions>& keys) {
  keys.add("eps", &LayerNormOptions::eps).above(0).doc("Added to the variance.");
  declare_activation(keys, &LayerNormOptions::activation, "to what is normalised");
}

LayerNorm::LayerNorm(const LayerSite& site, const LayerNormOptions& options)
    : Layer(site.input),
      eps_(options.eps),
      weight_(site.parameter("weight", {site.input.channels}, Initial::constant(1))),
      bias_(site.parameter("bias", {site.input.channels}, Initial::constant(0))),
      activation_(site.inner("activation", site.input), options.activation, site.input.channels) {}

Variable LayerNorm::run(Tape& tape, const Variable& x, const Variable& residual) const {
  const Variable y = layer_norm(tape, field_letters(x.shape().rank() - 2, 'c'), x, weight_, bias_, eps_);
  return activation_.run(tape, y, residual);
}

}  // namespace jigsaw::inline layers
