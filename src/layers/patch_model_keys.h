#pragma once
#include "base/text.h"
#include "config/keys.h"
#include "layers/limits.h"

namespace jigsaw::inline layers {

/// Keys that all models of patches begin with: `patch`, `embed_dim` and `depth`.
/// @param blocks  what `depth` counts.
template <typename Options>
void declare_patch_blocks(Keys<Options>& keys, const char* blocks) {
  keys.add("patch", &Options::patch)
      .required()
      .length(1, 3)
      .range(1, kMostPoints)
      .doc("Points of a patch along each spatial axis.");
  keys.add("embed_dim", &Options::embed_dim)
      .required()
      .range(1, kMostChannels)
      .doc("Width: channels of each patch.");
  keys.add("depth", &Options::depth).required().range(1, kMostBlocks).doc(concat("Number of ", blocks, "."));
}

/// `circular` of models whose patches may overlap.
template <typename Options>
void declare_circular_kernels(Keys<Options>& keys) {
  keys.add("circular", &Options::circular)
      .counts_where(here("patch_kernel").is_given())
      .doc(
          "Whether the last axis closes a circle, as longitudes of the whole globe do, so that kernels "
          "larger than a patch read round its end.");
}

/// What stands behind the encoder and before the decoder of all of them.
template <typename Options>
void declare_patch_ends(Keys<Options>& keys) {
  keys.add("time_embedding", &Options::time_embedding)
      .doc("Whether an embedding of the input's times, as data.forcings tell them, is added at each patch.");
  keys.add("final_norm", &Options::final_norm).doc("Whether a LayerNorm stands before the decoder.");
  keys.add("zero_decoder", &Options::zero_decoder)
      .doc("Whether the decoder starts at zero, so that the untrained model predicts no change.");
}

}  // namespace jigsaw::inline layers
