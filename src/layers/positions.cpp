#include "layers/positions.h"

#include "config/config.h"

namespace jigsaw {

void declare(Keys<PositionOptions>&) {}

LearnedPositions::LearnedPositions(const LayerSite& site, const PositionOptions&) : Layer(site.input) {
  Shape shape = site.input.space;
  shape.append(site.input.channels);
  position_ = site.parameter("position", shape, {Initial::Kind::kNormal, 0.02});
}

Variable LearnedPositions::run(Tape& tape, const Variable& x, const Variable& residual) const {
  const int space = x.shape().rank() - 2;
  return pointwise(tape, x, {field_letters(space, 'c'), position_, space_letters(space) + "c", residual});
}

}  // namespace jigsaw
