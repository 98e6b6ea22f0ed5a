#include "layers/positions.h"

#include <cmath>

#include "array/transfer.h"
#include "base/text.h"
#include "config/config.h"
#include "kernels/pointwise.h"

namespace jigsaw::inline layers {

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

void declare(Keys<SinCosOptions>& keys) {
  keys.add("base", &SinCosOptions::base).above(1).doc("Wave length of the slowest wave over 2π, in points.");
}

SinCosPositions::SinCosPositions(const LayerSite& site, const SinCosOptions& options)
    : Layer(site.input), base_(options.base) {
  const std::int64_t unit = 2 * site.input.space.rank(), channels = site.input.channels;
  if (channels % unit != 0) {
    site.error("type", concat("\"sincos_positions\" needs a multiple of ", unit, " channels, and gets ",
                              channels, "; use ", (channels + unit - 1) / unit * unit));
  }
}

Array SinCosPositions::piece(Tape& tape, const Layout& layout) const {
  const Box box = tape.rank().box(layout);
  const int space = layout.global.rank() - 1;
  const std::int64_t section = layout.global.back() / space, half = section / 2;
  std::vector<double> values(static_cast<std::size_t>(box.extent.count()));
  for_each_global_index(layout.global, box, 0, box.extent.count(), [&](std::int64_t i, std::int64_t index) {
    const std::int64_t channel = index % layout.global.back(), axis = channel / section;
    std::int64_t point = index / layout.global.back();
    for (int later = space - 1; later > axis; --later) point /= layout.global[later];
    point %= layout.global[static_cast<int>(axis)];
    const double rate =
        std::pow(base_, -2.0 * static_cast<double>(channel % section % half) / static_cast<double>(section));
    const double angle = static_cast<double>(point) * rate;
    values[static_cast<std::size_t>(i)] = channel % section < half ? std::sin(angle) : std::cos(angle);
  });
  return constant(tape.context(), box.extent, tape.dtype(), values, Purpose::kParameters);
}

Variable SinCosPositions::run(Tape& tape, const Variable& x, const Variable& residual) const {
  const int space = x.shape().rank() - 2;
  Shape shape = output().space;
  shape.append(output().channels);
  // Cut as fields are at the borders of blocks, less the sample.
  Layout layout{shape, {}};
  const Mesh& mesh = tape.rank().mesh;
  for (int dim = 0; dim < space; ++dim) layout.placements[mesh.domain(dim)] = Placement::shard(dim);
  layout.placements[mesh.tensor()] = Placement::shard(space);
  Variable position = Variable::traced(layout, -1);
  if (!tape.tracing()) {
    if (!made_.defined() || made_.dtype() != tape.dtype()) made_ = {piece(tape, layout), layout};
    position = Variable(made_, false);
  }
  return pointwise(tape, x, {field_letters(space, 'c'), position, space_letters(space) + "c", residual});
}

}  // namespace jigsaw::inline layers
