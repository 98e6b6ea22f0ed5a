#include "layers/overlapping_patches.h"

#include <algorithm>
#include <cstdlib>

#include "base/text.h"

namespace jigsaw::inline layers {

namespace {

/// @throws ConfigError  unless the kernel covers its patch.
Window window_of(const LayerSite& site, const PatchEmbedOptions& options) {
  const std::vector<std::int64_t>&patch = options.patch, &kernel = options.patch_kernel;
  std::vector<std::int64_t> larger = patch;
  for (std::size_t dim = 0; dim < std::min(patch.size(), kernel.size()); ++dim) {
    larger[dim] = std::max(patch[dim], kernel[dim]);
  }
  if (larger != kernel) {
    site.error("patch_kernel", concat("[", join(kernel, ", "), "] must cover the patch [", join(patch, ", "),
                                      "] along each axis; use [", join(larger, ", "), "]"));
  }
  return {Shape(kernel), Shape(patch), Shape::filled(static_cast<int>(patch.size()), 1)};
}

Padding padding_of(const LayerSite& site, const Window& window, const Shape& patches, bool circular) {
  const Shape& space = site.input.space;
  Padding padding;
  for (int dim = 0; dim < space.rank(); ++dim) {
    const std::int64_t patch = window.stride[dim], more = window.extent[dim] - patch, low = (more + 1) / 2;
    padding.dims.push_back({low, patches[dim] * patch + more - low - space[dim]});
  }
  if (!circular) return padding;
  Ends& ends = padding.dims.back();
  ends.low_edge = ends.high_edge = Edge::kPeriodic;
  const std::int64_t columns = space.back(), patch = window.stride[space.rank() - 1];
  if (columns % patch != 0) {
    std::int64_t fits = 1;
    for (std::int64_t n = 2; n <= columns; ++n) {
      if (columns % n == 0 && std::abs(n - patch) < std::abs(fits - patch)) fits = n;
    }
    site.error("circular", concat("needs a patch that divides the ", columns,
                                  " points of the last axis; use ", fits, " in place of ", patch));
  }
  if (ends.low > columns) {
    site.error("patch_kernel", concat("must reach at most once round the ", columns,
                                      " points of the last axis; use at most ", 2 * columns + patch));
  }
  return padding;
}

}  // namespace

OverlappingPatchEmbed::OverlappingPatchEmbed(const LayerSite& site, const PatchEmbedOptions& options)
    : Layer({patches_of(site, options.patch), options.embed_dim}),
      window_(window_of(site, options)),
      padding_(padding_of(site, window_, output().space, options.circular)) {
  Shape shape{options.embed_dim, site.input.channels};
  for (const std::int64_t points : window_.extent) shape.append(points);
  const Initial initial = Initial::fan_in(shape.count(1, shape.rank()));
  weight_ = site.weight("weight", shape, initial, 1);
  bias_ = site.parameter("bias", {options.embed_dim}, initial);
}

Variable OverlappingPatchEmbed::run(Tape& tape, const Variable& x, const Variable& residual) const {
  return add_residual(tape, convolution(tape, x, weight_, bias_, window_, 1, padding_), residual);
}

}  // namespace jigsaw::inline layers
