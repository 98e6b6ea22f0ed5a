#include "layers/layer_scale.h"

#include "config/config.h"

namespace jigsaw::inline layers {

void declare(Keys<LayerScaleOptions>& keys) {
  keys.add("initial", &LayerScaleOptions::initial).above(0).doc("Every factor at the start.");
}

LayerScale::LayerScale(const LayerSite& site, const LayerScaleOptions& options)
    : Layer(site.input),
      weight_(site.parameter("weight", {site.input.channels}, Initial::constant(options.initial))) {}

Variable LayerScale::run(Tape& tape, const Variable& x, const Variable& residual) const {
  const std::string field = field_letters(x.shape().rank() - 2, 'c');
  return add_residual(tape, contract(tape, field + ",c->" + field, x, weight_), residual);
}

}  // namespace jigsaw::inline layers
