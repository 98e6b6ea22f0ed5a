#pragma once
#include "autograd/field_operations.h"
#include "layers/patches.h"

namespace jigsaw::inline layers {

/// Overlapping patch embedding, torch.nn.Conv2d with kernel k larger than its stride s, the patch: as the
/// convolutional token embedding of CvT (Wu et al. 2021, arXiv 2103.15808), whose padding of ⌈(k − s)/2⌉
/// points puts each patch in the middle of its kernel. Beyond the grid lie zeros, or, along a last axis that
/// is circular, its other end. There are as many vectors as patches that cover the grid.
///
/// Parameters: weight [N, C, k…], bias [N]; U(±1/√(C·Πk)).
class OverlappingPatchEmbed : public Layer {
 public:
  /// @throws ConfigError  that names patch, patch_kernel or circular, and values that would work.
  OverlappingPatchEmbed(const LayerSite& site, const PatchEmbedOptions& options);
  std::vector<std::int64_t> input_units() const override {
    return {window_.stride.begin(), window_.stride.end()};
  }
  Variable run(Tape& tape, const Variable& x, const Variable& residual) const override;

 private:
  Window window_;
  Padding padding_;
  Variable weight_, bias_;
};

}  // namespace jigsaw::inline layers
