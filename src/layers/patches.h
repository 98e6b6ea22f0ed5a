#pragma once
#include "config/keys.h"
#include "layers/layer.h"

namespace jigsaw::inline layers {

/// Patch embedding: each patch of points becomes one vector, torch.nn.Conv2d with stride = kernel. A patch
/// that does not divide the grid reads zeros beyond its end.
struct PatchEmbedOptions {
  std::vector<std::int64_t> patch;
  std::int64_t embed_dim = 0;
  std::vector<std::int64_t> patch_kernel = {};  ///< empty: the patch; larger: see OverlappingPatchEmbed
  bool circular = false;                        ///< of such a kernel
};
void declare(Keys<PatchEmbedOptions>& keys);

/// Declares patch_kernel for models that have patches.
template <typename Options>
void declare_patch_kernel(Keys<Options>& keys) {
  keys.add("patch_kernel", &Options::patch_kernel)
      .length(0, 3)
      .at_least(1)
      .doc(
          "Points along each spatial axis that the vector of a patch is made of, the patch in their middle; "
          "[] for the patch alone. Larger ones overlap: a convolution by steps of a patch.");
}

/// PatchEmbed, or OverlappingPatchEmbed where a kernel is given. @throws ConfigError  that names the key.
LayerPtr patch_embed(const LayerSite& site, const PatchEmbedOptions& options);

/// How many patches cover the grid. @throws ConfigError  that names `patch` and values that would work.
Shape patches_of(const LayerSite& site, const std::vector<std::int64_t>& patch);

/// Parameters: weight [N, C, P] with P = Π patch points (Conv2d's [N, C, ph, pw] flattened), bias [N];
/// U(±1/√(C·P)).
class PatchEmbed : public Layer {
 public:
  PatchEmbed(const LayerSite& site, const PatchEmbedOptions& options);
  std::vector<std::int64_t> input_units() const override { return {patch_.begin(), patch_.end()}; }
  Variable run(Tape& tape, const Variable& x, const Variable& residual) const override;

 private:
  std::string path_;
  Shape patch_;
  Variable weight_, bias_;
};

/// The way back: each vector becomes a patch of points, by a linear layer; what lies beyond the grid is
/// dropped.
struct PatchRecoverOptions {
  std::vector<std::int64_t> patch;
  std::int64_t channels = 0;
  std::vector<std::int64_t> grid;
  bool zero_start = false;
};
void declare(Keys<PatchRecoverOptions>& keys);

/// Parameters: weight [C, P, N], bias [C, P], U(±1/√N) or zeros.
class PatchRecover : public Layer {
 public:
  PatchRecover(const LayerSite& site, const PatchRecoverOptions& options);
  std::vector<std::int64_t> output_units() const override { return {patch_.begin(), patch_.end()}; }
  Variable run(Tape& tape, const Variable& x, const Variable& residual) const override;

 private:
  std::string path_;
  Shape patch_;
  Variable weight_, bias_;
};

}  // namespace jigsaw::inline layers
