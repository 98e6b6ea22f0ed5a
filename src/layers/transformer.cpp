#include "layers/transformer.h"

#include "config/config.h"
#include "layers/layer_norm.h"
#include "layers/mixing.h"
#include "layers/residual.h"

namespace jigsaw {

void declare(Keys<TransformerBlockOptions>& keys) {
  using O = TransformerBlockOptions;
  keys.add("heads", &O::heads).required().at_least(1).doc("Number of attention heads; divides the width.");
  keys.add("mlp_ratio", &O::mlp_ratio).above(0).doc("Hidden size of the MLP over the width.");
  keys.add("dropout", &O::dropout)
      .at_least(0)
      .below(1)
      .doc("Dropout probability behind the hidden GELU of the MLP.");
  keys.add("attention_dropout", &O::attention_dropout)
      .at_least(0)
      .below(1)
      .doc("Dropout probability of attention weights.");
  keys.add("rotary", &O::rotary)
      .doc("Whether queries and keys are rotated by their position along each spatial axis.");
  keys.add("rotary_base", &O::rotary_base)
      .above(1)
      .doc("Wave length of the slowest rotation over 2π, in points.");
}

LayerPtr attention_half(const LayerSite& site, const TransformerBlockOptions& options) {
  std::vector<LayerPtr> layers;
  layers.push_back(std::make_unique<LayerNorm>(site.inner("norm1", site.input), LayerNormOptions{}));
  layers.push_back(std::make_unique<MultiHeadAttention>(
      site.inner("attention", site.input), MultiHeadAttentionOptions{options.heads, options.attention_dropout,
                                                                     options.rotary, options.rotary_base}));
  return std::make_unique<Residual>(std::make_unique<Chain>(std::move(layers)));
}

LayerPtr windowed_half(const LayerSite& site, const WindowedAttentionOptions& options) {
  std::vector<LayerPtr> layers;
  layers.push_back(std::make_unique<LayerNorm>(site.inner("norm1", site.input), LayerNormOptions{}));
  layers.push_back(std::make_unique<WindowedAttention>(site.inner("attention", site.input), options));
  return std::make_unique<Residual>(std::make_unique<Chain>(std::move(layers)));
}

LayerPtr mlp_half(const LayerSite& site, const TransformerBlockOptions& options) {
  std::vector<LayerPtr> layers;
  layers.push_back(std::make_unique<LayerNorm>(site.inner("norm2", site.input), LayerNormOptions{}));
  layers.push_back(std::make_unique<ChannelMixing>(site.inner("mlp", site.input),
                                                   ChannelMixingOptions{options.mlp_ratio, options.dropout}));
  return std::make_unique<Residual>(std::make_unique<Chain>(std::move(layers)));
}

LayerPtr transformer_block(const LayerSite& site, const TransformerBlockOptions& options) {
  std::vector<LayerPtr> halves;
  halves.push_back(attention_half(site, options));
  halves.push_back(mlp_half(site, options));
  return std::make_unique<Chain>(std::move(halves));
}

}  // namespace jigsaw
