#pragma once
#include "config/keys.h"
#include "layers/layer.h"

namespace jigsaw {

/// torch.nn.GELU, the exact one: x·Φ(x). No parameters.
struct GeluOptions {};
void declare(Keys<GeluOptions>& keys);

class Gelu : public Layer {
 public:
  Gelu(const LayerSite& site, const GeluOptions&) : Layer(site.input) {}
  Variable run(Tape& tape, const Variable& x, const Variable& residual) const override;
};

/// torch.nn.Dropout with a mask that is a function of the global element, equal on every mesh. No parameters.
struct DropoutOptions {
  double probability = 0.1;
};
void declare(Keys<DropoutOptions>& keys);

class DropoutLayer : public Layer {
 public:
  DropoutLayer(const LayerSite& site, const DropoutOptions& options)
      : Layer(site.input), path_(site.path), probability_(options.probability) {}
  Variable run(Tape& tape, const Variable& x, const Variable& residual) const override;

 private:
  std::string path_;
  double probability_;
};

}  // namespace jigsaw
