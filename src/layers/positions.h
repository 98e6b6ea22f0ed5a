#pragma once
#include "config/keys.h"
#include "layers/layer.h"

namespace jigsaw::inline layers {

/// A learned vector added at each point.
struct PositionOptions {};
void declare(Keys<PositionOptions>& keys);

/// Parameters: position [space…, C], normal with deviation 0.02 (Dosovitskiy et al. 2021).
class LearnedPositions : public Layer {
 public:
  LearnedPositions(const LayerSite& site, const PositionOptions&);
  Variable run(Tape& tape, const Variable& x, const Variable& residual) const override;

 private:
  Variable position_;
};

/// Sines and cosines of the coordinates added at each point (Vaswani et al. 2017, along each axis as He et
/// al. 2022): the channels are cut evenly into one section per axis; of a section of m channels, the first
/// half are sines and the second cosines of the coordinate times base^(−2i/m), i < m/2.
struct SinCosOptions {
  double base = 10000.0;
};
void declare(Keys<SinCosOptions>& keys);

/// No parameters.
class SinCosPositions : public Layer {
 public:
  SinCosPositions(const LayerSite& site, const SinCosOptions& options);
  Variable run(Tape& tape, const Variable& x, const Variable& residual) const override;

 private:
  Array piece(Tape& tape, const Layout& layout) const;

  double base_;
  mutable ShardedTensor made_;  // once made, used again
};

}  // namespace jigsaw::inline layers
