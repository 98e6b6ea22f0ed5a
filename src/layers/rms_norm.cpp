#include "layers/rms_norm.h"

#include "config/config.h"

namespace jigsaw::inline layers {

void declare(Keys<RmsNormOptions>& keys) {
  keys.add("eps", &RmsNormOptions::eps).above(0).doc("Added to the mean square.");
  declare_activation(keys, &RmsNormOptions::activation, "to what is normalised");
}

RmsNorm::RmsNorm(const LayerSite& site, const RmsNormOptions& options)
    : Layer(site.input),
      eps_(options.eps),
      weight_(site.parameter("weight", {site.input.channels}, Initial::constant(1))),
      activation_(site.inner("activation", site.input), options.activation, site.input.channels) {}

Variable RmsNorm::run(Tape& tape, const Variable& x, const Variable& residual) const {
  const Variable y = rms_norm(tape, field_letters(x.shape().rank() - 2, 'c'), x, weight_, eps_);
  return activation_.run(tape, y, residual);
}

}  // namespace jigsaw::inline layers
