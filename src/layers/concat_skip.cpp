#include "layers/concat_skip.h"

#include "autograd/field_operations.h"
#include "base/text.h"
#include "config/config.h"
#include "layers/registry.h"

namespace jigsaw::inline layers {

void declare(Keys<ConcatSkipOptions>& keys) {
  keys.tagged("layers", &ConcatSkipOptions::layers, layer_types)
      .required()
      .not_empty()
      .doc("Layers whose result stands behind their input, over channels; cropped to the input's points.");
}

namespace {

PoleCrossing joined_crossing(const FieldShape& first, const FieldShape& second) {
  PoleCrossing joined;
  const auto all_or_nothing = [&](std::vector<double> PoleCrossing::*values, double nothing) {
    if ((first.crossing.*values).empty() && (second.crossing.*values).empty()) return;
    for (const FieldShape* each : {&first, &second}) {
      const std::vector<double>& own = each->crossing.*values;
      const std::vector<double> scalars(static_cast<std::size_t>(each->channels), nothing);
      const std::vector<double>& all = own.empty() ? scalars : own;
      (joined.*values).insert((joined.*values).end(), all.begin(), all.end());
    }
  };
  all_or_nothing(&PoleCrossing::factor, 1.0);
  all_or_nothing(&PoleCrossing::offset, 0.0);
  return joined;
}

}  // namespace

FieldShape joined_shape(const LayerSite& site, const FieldShape& made) {
  const Shape& space = site.input.space;
  bool covers = made.space.rank() == space.rank();
  for (int dim = 0; covers && dim < space.rank(); ++dim) covers = made.space[dim] >= space[dim];
  if (!covers) {
    site.error("layers", concat("must end with at least the points they began with: ", site.input.to_string(),
                                ", not ", made.to_string(), "; upsample as often as you pool"));
  }
  if (const std::string rows = contradiction(made, site.input); made.space == space && !rows.empty())
    site.error("layers", "end with " + rows);
  const Range noise = made.noise.size() > 0 ? Range{} : site.input.noise;  // or it would be of two ranges
  return {space, site.input.channels + made.channels, joined_crossing(site.input, made), noise,
          site.input.rows};
}

Variable join_skip(Tape& tape, const Variable& skip, const Variable& made) {
  Padding crop;
  bool crops = false;
  for (int dim = 1; dim + 1 < skip.shape().rank(); ++dim) {
    crop.dims.push_back({0, skip.shape()[dim] - made.shape()[dim]});
    crops = crops || crop.dims.back().high != 0;
  }
  return concatenate(tape, skip, crops ? pad(tape, made, crop) : made);
}

Variable ConcatSkip::run(Tape& tape, const Variable& x, const Variable& residual) const {
  return add_residual(tape, join_skip(tape, x, inner_->run(tape, x)), residual);
}

}  // namespace jigsaw::inline layers
