#pragma once
#include "config/keys.h"
#include "layers/activation.h"
#include "layers/limits.h"
#include "layers/multi_head_attention.h"
#include "layers/spherical.h"
#include "layers/windowed_attention.h"

namespace jigsaw::inline layers {

/// A pre-norm transformer block (Dosovitskiy et al. 2021; torch.nn.TransformerEncoderLayer with norm_first
/// and the exact GELU): x + attention(norm1(x)), then x + mlp(norm2(x)).
struct TransformerBlockOptions {
  std::int64_t heads = 0;
  double mlp_ratio = 4.0;
  double dropout = 0.0;
  double attention_dropout = 0.0;
  bool rotary = false;
  double rotary_base = 10000.0;
  double layer_scale = 0.0;
  double drop_path = 0.0;
  ActivationKind activation = ActivationKind::kGelu;
};
void declare(Keys<TransformerBlockOptions>& keys);

/// Keys of models whose blocks are halves of this kind, one of them an MLP: mlp_ratio, dropout, layer_scale,
/// drop_path and activation.
template <typename Options>
void declare_halves(Keys<Options>& keys) {
  keys.add("mlp_ratio", &Options::mlp_ratio)
      .above(0)
      .at_most(kLargestRatio)
      .doc("Hidden size of each MLP over the width.");
  keys.add("dropout", &Options::dropout)
      .at_least(0)
      .below(1)
      .doc("Dropout probability behind the activation of each MLP.");
  keys.add("layer_scale", &Options::layer_scale)
      .at_least(0)
      .doc("Start of a learned factor for each channel of either half of a block; 0: no such factor.");
  keys.add("drop_path", &Options::drop_path)
      .at_least(0)
      .below(1)
      .idle_unless(here("depth").above(1))
      .doc(
          "Probability that a sample skips a half of a block in training; grows to it linearly with depth, "
          "from "
          "0 in the first block.");
  declare_activation(keys, &Options::activation, "to the hidden numbers of each MLP");
}

/// The first half: norm1 and attention with the residual around them. Parameters: norm1.weight, norm1.bias
/// [C], attention.* (MultiHeadAttention), layer_scale1.weight [C] where asked for.
LayerPtr attention_half(const LayerSite& site, const TransformerBlockOptions& options);
/// The same with attention inside windows, whose options stand in place of the block's heads, dropout of
/// attention weights and rotary positions.
LayerPtr windowed_half(const LayerSite& site, const TransformerBlockOptions& options,
                       const WindowedAttentionOptions& windows);
/// The same with a spherical convolution in place of attention, as `filter`.
LayerPtr spherical_half(const LayerSite& site, const TransformerBlockOptions& options,
                        const SphericalConvolutionOptions& convolution);
/// The second: norm2.weight, norm2.bias [C], mlp.* (ChannelMixing), layer_scale2.weight [C].
LayerPtr mlp_half(const LayerSite& site, const TransformerBlockOptions& options);
/// Stochastic depth of the i-th of `depth` blocks: from 0 at the first to `probability` at the last (Huang et
/// al. 2016).
double drop_path_at(double probability, std::int64_t block, std::int64_t depth);
/// Both.
LayerPtr transformer_block(const LayerSite& site, const TransformerBlockOptions& options);

}  // namespace jigsaw::inline layers
