#include "layers/transformer.h"

#include <algorithm>

#include "config/config.h"
#include "layers/layer_norm.h"
#include "layers/layer_scale.h"
#include "layers/limits.h"
#include "layers/mixing.h"
#include "layers/pointwise_layers.h"
#include "layers/residual.h"

namespace jigsaw::inline layers {

void declare(Keys<TransformerBlockOptions>& keys) {
  using O = TransformerBlockOptions;
  keys.add("heads", &O::heads)
      .required()
      .range(1, kMostChannels)
      .doc("Number of attention heads; divides the width.");
  keys.add("mlp_ratio", &O::mlp_ratio)
      .above(0)
      .at_most(kLargestRatio)
      .doc("Hidden size of the MLP over the width.");
  keys.add("dropout", &O::dropout)
      .at_least(0)
      .below(1)
      .doc("Dropout probability behind the activation of the MLP.");
  keys.add("attention_dropout", &O::attention_dropout)
      .at_least(0)
      .below(1)
      .doc("Dropout probability of attention weights.");
  keys.add("rotary", &O::rotary)
      .doc("Whether queries and keys are rotated by their position along each spatial axis.");
  keys.add("rotary_base", &O::rotary_base)
      .above(1)
      .counts_where(here("rotary").is(true))
      .doc("Wave length of the slowest rotation over 2π, in points.");
  keys.add("layer_scale", &O::layer_scale)
      .at_least(0)
      .doc("Start of a learned factor for each channel of either result; 0: no such factor.");
  keys.add("drop_path", &O::drop_path)
      .at_least(0)
      .below(1)
      .doc("Probability that a sample skips attention, or the MLP, in training.");
  declare_activation(keys, &O::activation, "to the hidden numbers of the MLP");
}

namespace {

/// x + drop_path(layer_scale(inner(norm(x)))), the i-th of the block's.
LayerPtr pre_norm(const LayerSite& site, const char* i, const TransformerBlockOptions& options,
                  LayerPtr inner) {
  const auto named = [&](const char* name) { return site.inner(std::string(name) + i, site.input); };
  std::vector<LayerPtr> layers;
  layers.push_back(std::make_unique<LayerNorm>(named("norm"), LayerNormOptions{}));
  layers.push_back(std::move(inner));
  if (options.layer_scale > 0) {
    layers.push_back(
        std::make_unique<LayerScale>(named("layer_scale"), LayerScaleOptions{options.layer_scale}));
  }
  if (options.drop_path > 0) {
    layers.push_back(std::make_unique<DropPath>(named("drop_path"), DropPathOptions{options.drop_path}));
  }
  return std::make_unique<Residual>(std::make_unique<Chain>(std::move(layers)));
}

}  // namespace

LayerPtr attention_half(const LayerSite& site, const TransformerBlockOptions& options) {
  const MultiHeadAttentionOptions attention{options.heads, options.attention_dropout, options.rotary,
                                            options.rotary_base};
  return pre_norm(site, "1", options,
                  std::make_unique<MultiHeadAttention>(site.inner("attention", site.input), attention));
}

LayerPtr windowed_half(const LayerSite& site, const TransformerBlockOptions& options,
                       const WindowedAttentionOptions& windows) {
  return pre_norm(site, "1", options,
                  std::make_unique<WindowedAttention>(site.inner("attention", site.input), windows));
}

LayerPtr spherical_half(const LayerSite& site, const TransformerBlockOptions& options,
                        const SphericalConvolutionOptions& convolution) {
  return pre_norm(site, "1", options,
                  std::make_unique<SphericalConvolution>(site.inner("filter", site.input), convolution));
}

LayerPtr mlp_half(const LayerSite& site, const TransformerBlockOptions& options) {
  const ChannelMixingOptions mlp{options.mlp_ratio, options.dropout, options.activation};
  return pre_norm(site, "2", options, std::make_unique<ChannelMixing>(site.inner("mlp", site.input), mlp));
}

double drop_path_at(double probability, std::int64_t block, std::int64_t depth) {
  return probability * static_cast<double>(block) / static_cast<double>(std::max<std::int64_t>(depth - 1, 1));
}

LayerPtr transformer_block(const LayerSite& site, const TransformerBlockOptions& options) {
  std::vector<LayerPtr> halves;
  halves.push_back(attention_half(site, options));
  halves.push_back(mlp_half(site, options));
  return std::make_unique<Chain>(std::move(halves));
}

}  // namespace jigsaw::inline layers
