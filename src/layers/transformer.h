#pragma once
#include "config/keys.h"
#include "layers/activation.h"
#include "layers/multi_head_attention.h"
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

/// The first half: norm1 and attention with the residual around them. Parameters: norm1.weight, norm1.bias
/// [C], attention.* (MultiHeadAttention), layer_scale1.weight [C] where asked for.
LayerPtr attention_half(const LayerSite& site, const TransformerBlockOptions& options);
/// The same with attention inside windows, whose options stand in place of the block's heads, dropout of
/// attention weights and rotary positions.
LayerPtr windowed_half(const LayerSite& site, const TransformerBlockOptions& options,
                       const WindowedAttentionOptions& windows);
/// The second: norm2.weight, norm2.bias [C], mlp.* (ChannelMixing), layer_scale2.weight [C].
LayerPtr mlp_half(const LayerSite& site, const TransformerBlockOptions& options);
/// Both.
LayerPtr transformer_block(const LayerSite& site, const TransformerBlockOptions& options);

}  // namespace jigsaw::inline layers
