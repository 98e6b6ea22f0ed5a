#pragma once
#include "config/keys.h"
#include "layers/activation.h"

namespace jigsaw::inline layers {

/// torch.nn.GELU (the exact one, x·Φ(x)), ReLU, SiLU, Tanh, Sigmoid, Mish or LeakyReLU, without parameters,
/// or PReLU: slope [C] of 0.25.
struct ActivationOptions {};
void declare(Keys<ActivationOptions>& keys);

class ActivationLayer : public Layer {
 public:
  ActivationLayer(const LayerSite& site, ActivationKind kind)
      : Layer(site.input), activation_(site, kind, site.input.channels) {}
  Variable run(Tape& tape, const Variable& x, const Variable& residual) const override {
    return activation_.run(tape, x, residual);
  }

 private:
  InnerActivation activation_;
};

/// torch.nn.Dropout with a mask that is a function of the global element, equal on every mesh. No parameters.
struct DropoutOptions {
  double probability = 0.1;
};
void declare(Keys<DropoutOptions>& keys);

class DropoutLayer : public Layer {
 public:
  DropoutLayer(const LayerSite& site, const DropoutOptions& options)
      : Layer(site.input, site.input.crossing), path_(site.path), probability_(options.probability) {}
  Variable run(Tape& tape, const Variable& x, const Variable& residual) const override;

 private:
  std::string path_;
  double probability_;
};

/// Stochastic depth (Huang et al. 2016, "Deep networks with stochastic depth";
/// torchvision.ops.StochasticDepth in mode "row"): in training each sample is dropped as a whole, or scaled
/// by 1/(1 − p). Stands last in a residual. The choice is a function of the global sample, equal on every
/// mesh. No parameters.
struct DropPathOptions {
  double probability = 0.1;
};
void declare(Keys<DropPathOptions>& keys);

class DropPath : public Layer {
 public:
  DropPath(const LayerSite& site, const DropPathOptions& options)
      : Layer(site.input, site.input.crossing), path_(site.path), probability_(options.probability) {}
  Variable run(Tape& tape, const Variable& x, const Variable& residual) const override;

 private:
  std::string path_;
  double probability_;
};

}  // namespace jigsaw::inline layers
