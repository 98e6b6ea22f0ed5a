#include "layers/residual.h"

#include "config/config.h"
#include "layers/registry.h"

namespace jigsaw::inline layers {

Chain::Chain(std::vector<LayerPtr> layers)
    : Layer(layers.back()->output(), layers.back()->output().crossing), layers_(std::move(layers)) {}

Variable Chain::run(Tape& tape, const Variable& x, const Variable& residual) const {
  Variable y = x;
  for (std::size_t i = 0; i + 1 < layers_.size(); ++i) y = layers_[i]->run(tape, y);
  return layers_.back()->run(tape, y, residual);
}

void declare(Keys<ResidualOptions>& keys) {
  keys.tagged("layers", &ResidualOptions::layers, layer_types)
      .required()
      .not_empty()
      .doc("Layers whose result is added to their input; of the input's shape.");
}

Variable Residual::run(Tape& tape, const Variable& x, const Variable& residual) const {
  return add_residual(tape, inner_->run(tape, x, skip_ ? skip_->run(tape, x) : x), residual);
}

}  // namespace jigsaw::inline layers
