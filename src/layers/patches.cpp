#include "layers/patches.h"

#include "config/config.h"
#include "layers/limits.h"
#include "layers/overlapping_patches.h"

namespace jigsaw::inline layers {

namespace {

/// The patch as a shape, or an error that names the key and values that would work.
Shape checked_patch(const LayerSite& site, const std::vector<std::int64_t>& patch, const Shape& grid) {
  if (static_cast<int>(patch.size()) != grid.rank()) {
    site.error("patch",
               concat("must have one entry per spatial axis: ", grid.rank(), ", not ", patch.size()));
  }
  for (int dim = 0; dim < grid.rank(); ++dim) {
    if (patch[static_cast<std::size_t>(dim)] > grid[dim]) {
      site.error("patch", concat("[", join(patch, ", "), "] is larger than the grid ", grid, "; entry ", dim,
                                 " can be at most ", grid[dim]));
    }
  }
  return Shape(patch);
}

}  // namespace

Shape patches_of(const LayerSite& site, const std::vector<std::int64_t>& patch) {
  const Shape checked = checked_patch(site, patch, site.input.space);
  Shape patches;
  for (int dim = 0; dim < checked.rank(); ++dim) {
    patches.append((site.input.space[dim] + checked[dim] - 1) / checked[dim]);
  }
  return patches;
}

LayerPtr patch_embed(const LayerSite& site, const PatchEmbedOptions& options) {
  if (!options.patch_kernel.empty()) return std::make_unique<OverlappingPatchEmbed>(site, options);
  if (options.circular) {
    site.error("circular", "is for patches that overlap: give patch_kernel, larger than the patch");
  }
  return std::make_unique<PatchEmbed>(site, options);
}

void declare(Keys<PatchEmbedOptions>& keys) {
  keys.add("patch", &PatchEmbedOptions::patch)
      .required()
      .length(1, 3)
      .range(1, kMostPoints)
      .doc("Points of a patch along each spatial axis.");
  keys.add("embed_dim", &PatchEmbedOptions::embed_dim)
      .required()
      .range(1, kMostChannels)
      .doc("Channels of the result.");
  declare_patch_kernel(keys);
  keys.add("circular", &PatchEmbedOptions::circular)
      .counts_where(here("patch_kernel").is_given())
      .doc(
          "Whether kernels read round the end of the last axis, as round the globe; zeros lie beyond "
          "others.");
}

void declare(Keys<PatchRecoverOptions>& keys) {
  keys.add("patch", &PatchRecoverOptions::patch)
      .required()
      .length(1, 3)
      .range(1, kMostPoints)
      .doc("Points of a patch along each spatial axis.");
  keys.add("channels", &PatchRecoverOptions::channels)
      .range(0, kMostChannels)
      .doc("Channels of the result; 0: as many as the data has targets.");
  keys.add("grid", &PatchRecoverOptions::grid)
      .length(0, 3)
      .range(1, kMostPoints)
      .doc("Extents of the result; empty: those of the data's grid.");
  keys.add("zero_start", &PatchRecoverOptions::zero_start)
      .doc("Whether weight and bias start at zero, so that an untrained model predicts zero.");
}

PatchEmbed::PatchEmbed(const LayerSite& site, const PatchEmbedOptions& options)
    : Layer({patches_of(site, options.patch), options.embed_dim}), path_(site.path), patch_(options.patch) {
  const Initial initial = Initial::fan_in(site.input.channels * patch_.count());
  weight_ = site.weight("weight", {options.embed_dim, site.input.channels, patch_.count()}, initial, 1);
  bias_ = site.parameter("bias", {options.embed_dim}, initial);
}

Variable PatchEmbed::run(Tape& tape, const Variable& x, const Variable& residual) const {
  const int space = patch_.rank();
  const Variable patches = patchify(tape, x, patch_);
  const std::string out = field_letters(space, 'n');
  const Variable y = contract(tape, field_letters(space, 'c') + "p,ncp->" + out, patches, weight_);
  return pointwise(tape, y, {out, bias_, "n", residual, Activation::kNone, 0.0, path_});
}

PatchRecover::PatchRecover(const LayerSite& site, const PatchRecoverOptions& options)
    : Layer({Shape(options.grid), options.channels}),
      path_(site.path),
      patch_(checked_patch(site, options.patch, Shape(options.grid))) {
  for (int dim = 0; dim < patch_.rank(); ++dim) {
    if ((output().space[dim] + patch_[dim] - 1) / patch_[dim] != site.input.space[dim]) {
      site.error("patch", concat("[", join(options.patch, ", "), "] of ", site.input.space,
                                 " patches does not cover the grid ", output().space));
    }
  }
  const Initial initial = options.zero_start ? Initial::constant(0) : Initial::fan_in(site.input.channels);
  weight_ = site.parameter("weight", {options.channels, patch_.count(), site.input.channels}, initial);
  bias_ = site.parameter("bias", {options.channels, patch_.count()}, initial);
}

Variable PatchRecover::run(Tape& tape, const Variable& x, const Variable& residual) const {
  const int space = patch_.rank();
  const std::string out = field_letters(space, 'c') + "p";
  Variable y = contract(tape, field_letters(space, 'n') + ",cpn->" + out, x, weight_);
  y = pointwise(tape, y, {out, bias_, "cp", {}, Activation::kNone, 0.0, path_});
  return add_residual(tape, unpatchify(tape, y, patch_, output().space), residual);
}

}  // namespace jigsaw::inline layers
