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
  /// @param skip  what x becomes beside the inner layers, of their shape; null: itself.
  explicit Residual(LayerPtr inner, LayerPtr skip = nullptr)
      : Layer(inner->output()), inner_(std::move(inner)), skip_(std::move(skip)) {}
  Variable run(Tape& tape, const Variable& x, const Variable& residual) const override;

 private:
  LayerPtr inner_, skip_;
};

}  // namespace jigsaw::inline layers
