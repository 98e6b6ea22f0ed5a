#include "layers/batch_norm.h"

#include "config/config.h"

namespace jigsaw::inline layers {

void declare(Keys<BatchNormOptions>& keys) {
  keys.add("eps", &BatchNormOptions::eps).above(0).doc("Added to the variance.");
  keys.add("momentum", &BatchNormOptions::momentum)
      .above(0)
      .at_most(1)
      .doc("Part of its way to the batch's statistics that the running ones go in a step.");
  declare_activation(keys, &BatchNormOptions::activation, "to what is normalised");
}

BatchNorm::BatchNorm(const LayerSite& site, const BatchNormOptions& options)
    : Layer(site.input),
      eps_(options.eps),
      weight_(site.parameter("weight", {site.input.channels}, Initial::constant(1))),
      bias_(site.parameter("bias", {site.input.channels}, Initial::constant(0))),
      running_mean_(site.statistic("running_mean", site.input.channels, 0, options.momentum)),
      running_variance_(site.statistic("running_var", site.input.channels, 1, options.momentum)),
      activation_(site.inner("activation", site.input), options.activation, site.input.channels) {}

Variable BatchNorm::run(Tape& tape, const Variable& x, const Variable& residual) const {
  const Variable y =
      batch_norm(tape, x, weight_, bias_, running_mean_, running_variance_, eps_, activation_.function());
  return activation_.run_behind(tape, y, residual);
}

}  // namespace jigsaw::inline layers
