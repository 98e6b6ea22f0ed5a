#pragma once
#include "layers/activation.h"
#include "layers/spatial_keys.h"

namespace jigsaw::inline layers {

/// torch.nn.Conv1d, Conv2d, Conv3d, by the field's number of spatial dims; padding also around the globe.
struct ConvolutionOptions {
  std::int64_t features = 0;
  Extents kernel;
  Extents stride = {1};
  Extents padding = {0};
  Extents dilation = {1};
  Edges padding_mode = {Edge::kZero};
  std::int64_t groups = 1;
  bool bias = true;
  bool zero_start = false;
  ActivationKind activation = ActivationKind::kNone;
  Edges far_padding_mode = {};  ///< of the far ends, where it is another; no key
};
void declare(Keys<ConvolutionOptions>& keys);

/// Parameters: weight [O, C/groups, kernel…], bias [O]; U(±1/√(C/groups·Π kernel)), or zeros.
class ConvolutionLayer : public Layer {
 public:
  ConvolutionLayer(const LayerSite& site, const ConvolutionOptions& options);
  Variable run(Tape& tape, const Variable& x, const Variable& residual) const override;

 private:
  Window window_;
  std::int64_t groups_;
  Padding padding_;
  Variable weight_, bias_;
  InnerActivation activation_;
};

/// torch.nn.ConvTranspose1d, 2d, 3d.
struct TransposedConvolutionOptions {
  std::int64_t features = 0;
  Extents kernel;
  Extents stride = {1};
  Extents padding = {0};
  Extents output_padding = {0};
  Extents dilation = {1};
  Extents size;  ///< of the result; empty: all of it
  std::int64_t groups = 1;
  bool bias = true;
  ActivationKind activation = ActivationKind::kNone;
};
void declare(Keys<TransposedConvolutionOptions>& keys);

/// Parameters: weight [C, O/groups, kernel…], bias [O]; U(±1/√(O/groups·Π kernel)).
class TransposedConvolutionLayer : public Layer {
 public:
  TransposedConvolutionLayer(const LayerSite& site, const TransposedConvolutionOptions& options);
  Variable run(Tape& tape, const Variable& x, const Variable& residual) const override;

 private:
  Window window_;
  std::int64_t groups_;
  Shape padding_;
  Variable weight_, bias_;
  InnerActivation activation_;
};

}  // namespace jigsaw::inline layers
