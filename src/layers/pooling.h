#pragma once
#include "layers/spatial_keys.h"

namespace jigsaw::inline layers {

/// torch.nn.MaxPool1d, 2d, 3d.
struct MaxPoolOptions {
  Extents kernel;
  Extents stride;  ///< empty: the kernel's
  Extents padding = {0};
  Extents dilation = {1};
  Edges padding_mode = {Edge::kZero};
  bool ceil_mode = false;
};
void declare(Keys<MaxPoolOptions>& keys);

/// torch.nn.AvgPool1d, 2d, 3d.
struct AveragePoolOptions {
  Extents kernel;
  Extents stride;  ///< empty: the kernel's
  Extents padding = {0};
  Edges padding_mode = {Edge::kZero};
  bool ceil_mode = false;
  bool count_include_pad = true;
};
void declare(Keys<AveragePoolOptions>& keys);

/// The largest value, or the mean, of each window. No parameters.
class PoolingLayer : public Layer {
 public:
  PoolingLayer(const LayerSite& site, const MaxPoolOptions& options);
  PoolingLayer(const LayerSite& site, const AveragePoolOptions& options);
  Variable run(Tape& tape, const Variable& x, const Variable& residual) const override;

 private:
  PoolingKind kind_;
  Window window_;
  Padding padding_;
  bool count_padding_ = false;
};

/// torch.nn.AdaptiveAvgPool to one point: the mean over space. No parameters.
struct GlobalAveragePoolOptions {};
void declare(Keys<GlobalAveragePoolOptions>& keys);

class GlobalAveragePool : public Layer {
 public:
  GlobalAveragePool(const LayerSite& site, const GlobalAveragePoolOptions&)
      : Layer({Shape::filled(site.input.space.rank(), 1), site.input.channels}) {}
  Variable run(Tape& tape, const Variable& x, const Variable& residual) const override;
};

}  // namespace jigsaw::inline layers
