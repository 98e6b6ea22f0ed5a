#include "layers/resampling.h"

#include <algorithm>

#include "base/text.h"
#include "config/config.h"
#include "layers/limits.h"

namespace jigsaw::inline layers {

void declare(Keys<UpsampleOptions>& keys) {
  using O = UpsampleOptions;
  keys.add("scale", &O::scale, one_or_list<std::int64_t>())
      .range(1, kMostPoints)
      .doc("Points of the result for each point, for all spatial axes or for each.");
  keys.add("size", &O::size, one_or_list<std::int64_t>())
      .range(1, kMostPoints)
      .doc("Points of the result along each axis; beside a scale, how many of its points are kept.");
  keys.choice(
          "mode", &O::mode,
          {{"nearest", Interpolation::kNearest, "The nearest point, as of cells that begin alike."},
           {"nearest-exact", Interpolation::kNearestExact, "The point nearest to the middle of each cell."},
           {"linear", Interpolation::kLinear, "Linear along each axis, cells aligned by their corners."}})
      .doc("How points are made.");
  keys.add("padding_mode", &O::padding_mode, edges_form())
      .idle_unless(here("mode").is("linear"))
      .doc("What lies beyond the ends, where linear interpolation reads there.");
  keys.check([](const O& options, const Place& at) {
    if (options.scale.empty() && options.size.empty()) at.error("scale", "or size must be given, such as 2");
  });
}

namespace {

Shape grid_of(const LayerSite& site, const UpsampleOptions& options) {
  if (options.scale.empty()) return per_dim(site, "size", options.size);
  Shape grid = per_dim(site, "scale", options.scale);
  for (int dim = 0; dim < grid.rank(); ++dim) {
    const std::int64_t most = kMostElements / site.input.space[dim];
    if (grid[dim] > most) site.error("scale", concat("must be at most ", most, " here, and is ", grid[dim]));
    grid[dim] *= site.input.space[dim];
  }
  return grid;
}

FieldShape resampled(const LayerSite& site, const UpsampleOptions& options) {
  const Shape grid = grid_of(site, options);
  if (options.size.empty()) return {grid, site.input.channels, {}, site.input.noise};
  const Shape size = per_dim(site, "size", options.size);
  for (int dim = 0; dim < grid.rank(); ++dim) {
    if (size[dim] > grid[dim]) {
      site.error("size",
                 concat("must be at most ", grid, ", the points that the scale gives, and is ", size));
    }
  }
  return {size, site.input.channels, {}, site.input.noise};
}

}  // namespace

Upsample::Upsample(const LayerSite& site, const UpsampleOptions& options)
    : Layer(resampled(site, options), site.input.crossing),
      mode_(options.mode),
      grid_(grid_of(site, options)),
      edges_(padding_of(site, Shape::filled(site.input.space.rank(), 0), options.padding_mode)) {}

Variable Upsample::run(Tape& tape, const Variable& x, const Variable& residual) const {
  return add_residual(tape, resample(tape, x, mode_, grid_, output().space, edges_), residual);
}

void declare(Keys<PadOptions>& keys) {
  keys.add("low", &PadOptions::low, one_or_list<std::int64_t>())
      .range(0, kMostPoints)
      .doc("Points added at the near end, for all spatial axes or for each.");
  keys.add("high", &PadOptions::high, one_or_list<std::int64_t>())
      .range(0, kMostPoints)
      .doc("Points added at the far end.");
  keys.add("padding_mode", &PadOptions::padding_mode, edges_form())
      .idle_unless(here("low").above(0) || here("high").above(0))
      .doc("What they hold, for all spatial axes or for each.");
}

namespace {

FieldShape padded(const LayerSite& site, const PadOptions& options) {
  FieldShape result = site.input;
  const Shape low = per_dim(site, "low", options.low), high = per_dim(site, "high", options.high);
  for (int dim = 0; dim < low.rank(); ++dim) result.space[dim] += low[dim] + high[dim];
  result.rows = {};  // they lie elsewhere, unless nothing changes
  return result;
}

}  // namespace

Pad::Pad(const LayerSite& site, const PadOptions& options)
    : Layer(padded(site, options), site.input.crossing) {
  const Shape low = per_dim(site, "low", options.low), high = per_dim(site, "high", options.high);
  Shape most = low;
  for (int dim = 0; dim < low.rank(); ++dim) most[dim] = std::max(low[dim], high[dim]);
  padding_ = padding_of(site, most, options.padding_mode);
  for (int dim = 0; dim < low.rank(); ++dim) {
    padding_.dims[static_cast<std::size_t>(dim)].low = low[dim];
    padding_.dims[static_cast<std::size_t>(dim)].high = high[dim];
  }
}

Variable Pad::run(Tape& tape, const Variable& x, const Variable& residual) const {
  return add_residual(tape, pad(tape, x, padding_), residual);
}

}  // namespace jigsaw::inline layers
