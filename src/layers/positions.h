#pragma once
#include "config/keys.h"
#include "layers/layer.h"

namespace jigsaw {

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

}  // namespace jigsaw
