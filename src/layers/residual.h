#pragma once
#include "config/keys.h"
#include "layers/layer.h"

namespace jigsaw::inline layers {

/// Layers one after the other, as one layer.
class Chain : public Layer {
 public:
  explicit Chain(std::vector<LayerPtr> layers);
  std::vector<std::int64_t> input_units() const override { return layers_.front()->input_units(); }
  std::vector<std::int64_t> output_units() const override { return layers_.back()->output_units(); }
  Variable run(Tape& tape, const Variable& x, const Variable& residual) const override;

 private:
  std::vector<LayerPtr> layers_;
};

/// x + layers(x).
struct ResidualOptions {
  std::vector<Tagged> layers;
};
void declare(Keys<ResidualOptions>& keys);

class Residual : public Layer {
 public:
  explicit Residual(LayerPtr inner) : Layer(inner->output()), inner_(std::move(inner)) {}
  Variable run(Tape& tape, const Variable& x, const Variable& residual) const override;

 private:
  LayerPtr inner_;
};

}  // namespace jigsaw::inline layers
