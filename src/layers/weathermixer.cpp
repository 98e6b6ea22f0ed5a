#include "layers/weathermixer.h"

#include "base/text.h"
#include "config/config.h"
#include "layers/layer_norm.h"
#include "layers/limits.h"
#include "layers/mixing.h"
#include "layers/patch_model_keys.h"
#include "layers/patches.h"
#include "layers/positions.h"
#include "layers/residual.h"
#include "layers/time_embedding.h"

namespace jigsaw::inline layers {

void declare(Keys<WeatherMixerOptions>& keys) {
  using O = WeatherMixerOptions;
  declare_patch_blocks(keys, "mixer blocks");
  keys.add("token_hidden_ratio", &O::token_hidden_ratio)
      .above(0)
      .at_most(kLargestRatio)
      .doc("Hidden size of token mixing over the number of patches.");
  keys.add("channel_hidden_ratio", &O::channel_hidden_ratio)
      .above(0)
      .at_most(kLargestRatio)
      .doc("Hidden size of channel mixing over the width.");
  keys.add("dropout", &O::dropout)
      .at_least(0)
      .below(1)
      .doc("Dropout probability behind the activation of each MLP.");
  declare_activation(keys, &O::activation, "to the hidden numbers of each MLP");
  declare_patch_kernel(keys);
  declare_circular_kernels(keys);
  keys.add("positions", &O::positions).doc("Whether a learned vector is added at each patch.");
  declare_patch_ends(keys);
  keys.add("output_map", &O::output_map)
      .doc(
          "Whether the decoder's result is combined with the input by a last linear map over [output, input] "
          "channels.");
}

namespace {

/// LayerNorm, then a mixing layer, with a residual around both.
template <typename Mixing, typename Options>
LayerPtr half_block(const LayerSite& site, const std::string& name, const Options& options) {
  std::vector<LayerPtr> layers;
  layers.push_back(std::make_unique<LayerNorm>(site.inner(name + "_norm", site.input), LayerNormOptions{}));
  layers.push_back(std::make_unique<Mixing>(site.inner(name + "_mixing", site.input), options));
  return std::make_unique<Residual>(std::make_unique<Chain>(std::move(layers)));
}

}  // namespace

void append_weathermixer(Model& model, const WeatherMixerOptions& options) {
  const ModelDescription& description = model.description();
  model.append("encoder", "model", [&](const LayerSite& site) -> LayerPtr {
    std::vector<LayerPtr> layers;
    layers.push_back(
        patch_embed(site, {options.patch, options.embed_dim, options.patch_kernel, options.circular}));
    if (options.positions) {
      layers.push_back(
          std::make_unique<LearnedPositions>(site.at_root("", layers.back()->output()), PositionOptions{}));
    }
    return with_time(site, options.time_embedding, std::make_unique<Chain>(std::move(layers)));
  });
  for (std::int64_t i = 0; i < options.depth; ++i) {
    const std::string block = concat("blocks.", i);
    model.append(block + ".token", "model", [&](const LayerSite& site) {
      return half_block<TokenMixing>(
          site.at_root(block, site.input), "token",
          TokenMixingOptions{options.token_hidden_ratio, options.dropout, options.activation});
    });
    model.append(block + ".channel", "model", [&](const LayerSite& site) {
      return half_block<ChannelMixing>(
          site.at_root(block, site.input), "channel",
          ChannelMixingOptions{options.channel_hidden_ratio, options.dropout, options.activation});
    });
  }
  model.append("decoder", "model", [&](const LayerSite& site) -> LayerPtr {
    std::vector<LayerPtr> layers;
    if (options.final_norm) {
      layers.push_back(std::make_unique<LayerNorm>(site.at_root("norm", site.input), LayerNormOptions{}));
    }
    layers.push_back(std::make_unique<PatchRecover>(
        site, PatchRecoverOptions{options.patch,
                                  description.output_channels,
                                  {description.space.begin(), description.space.end()},
                                  options.zero_decoder}));
    return std::make_unique<Chain>(std::move(layers));
  });
  if (options.output_map) model.append_output_map();
}

}  // namespace jigsaw::inline layers
