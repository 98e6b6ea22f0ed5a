#include "layers/vit.h"

#include "base/text.h"
#include "config/config.h"
#include "layers/layer_norm.h"
#include "layers/limits.h"
#include "layers/patch_model_keys.h"
#include "layers/patches.h"
#include "layers/positions.h"
#include "layers/residual.h"
#include "layers/time_embedding.h"
#include "layers/transformer.h"

namespace jigsaw::inline layers {

namespace {

/// Keys that both have.
template <typename O>
void declare_transformer(Keys<O>& keys) {
  declare_patch_blocks(keys, "transformer blocks");
  keys.add("heads", &O::heads)
      .required()
      .range(1, kMostChannels)
      .doc("Number of attention heads; divides the width.");
  declare_halves(keys);
  keys.add("attention_dropout", &O::attention_dropout)
      .at_least(0)
      .below(1)
      .doc("Dropout probability of attention weights.");
  declare_patch_kernel(keys);
  declare_patch_ends(keys);
}

}  // namespace

void declare(Keys<VitOptions>& keys) {
  using O = VitOptions;
  declare_transformer(keys);
  declare_circular_kernels(keys);
  keys.choice("positions", &O::positions,
              {{"learned", VitPositions::kLearned, "A learned vector is added at each patch."},
               {"sincos", VitPositions::kSinCos, "Sines and cosines of the coordinates are added."},
               {"rotary", VitPositions::kRotary, "Queries and keys are rotated by their coordinates."},
               {"none", VitPositions::kNone, "Patches do not know where they lie."}})
      .doc("How patches know where they lie.");
}

void declare(Keys<SwinOptions>& keys) {
  declare_transformer(keys);
  keys.add("window", &SwinOptions::window)
      .required()
      .length(1, 3)
      .range(1, kMostPoints)
      .doc("Patches of a window along each spatial axis; divides the number of patches.");
  keys.add("circular", &SwinOptions::circular)
      .doc(
          "Whether the last axis closes a circle, as longitudes of the whole globe do, so that shifted "
          "windows, and kernels larger than a patch, reach round its end.");
}

namespace {

LayerPtr vit_encoder(const LayerSite& site, const VitOptions& options) {
  std::vector<LayerPtr> layers;
  layers.push_back(
      patch_embed(site, {options.patch, options.embed_dim, options.patch_kernel, options.circular}));
  const LayerSite root = site.at_root("", layers.back()->output());
  if (options.positions == VitPositions::kLearned) {
    layers.push_back(std::make_unique<LearnedPositions>(root, PositionOptions{}));
  } else if (options.positions == VitPositions::kSinCos) {
    layers.push_back(std::make_unique<SinCosPositions>(root, SinCosOptions{}));
  }
  return with_time(site, options.time_embedding, std::make_unique<Chain>(std::move(layers)));
}

LayerPtr swin_encoder(const LayerSite& site, const SwinOptions& options) {
  const bool round = options.circular && !options.patch_kernel.empty();
  return with_time(site, options.time_embedding,
                   patch_embed(site, {options.patch, options.embed_dim, options.patch_kernel, round}));
}

template <typename Options>
TransformerBlockOptions block_options(const Options& options) {
  TransformerBlockOptions block{options.heads, options.mlp_ratio, options.dropout};
  block.layer_scale = options.layer_scale;
  block.activation = options.activation;
  return block;
}

template <typename Options>
LayerPtr decoder(const LayerSite& site, const Options& options, const ModelDescription& description) {
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
}

}  // namespace

void append_vit(Model& model, const VitOptions& options) {
  model.append("encoder", "model", [&](const LayerSite& site) { return vit_encoder(site, options); });
  TransformerBlockOptions block = block_options(options);
  block.attention_dropout = options.attention_dropout;
  block.rotary = options.positions == VitPositions::kRotary;
  for (std::int64_t i = 0; i < options.depth; ++i) {
    block.drop_path = drop_path_at(options.drop_path, i, options.depth);
    // Halves are blocks of their own: planned, gathered and recomputed as one.
    const std::string path = concat("blocks.", i);
    model.append(path + ".attention", "model", [&](const LayerSite& site) {
      return attention_half(site.at_root(path, site.input), block);
    });
    model.append(path + ".mlp", "model",
                 [&](const LayerSite& site) { return mlp_half(site.at_root(path, site.input), block); });
  }
  model.append("decoder", "model",
               [&](const LayerSite& site) { return decoder(site, options, model.description()); });
}

void append_swin(Model& model, const SwinOptions& options) {
  model.append("encoder", "model", [&](const LayerSite& site) { return swin_encoder(site, options); });
  TransformerBlockOptions block = block_options(options);
  WindowedAttentionOptions windows{
      options.heads, options.window, {}, options.circular, options.attention_dropout};
  for (std::int64_t i = 0; i < options.depth; ++i) {
    block.drop_path = drop_path_at(options.drop_path, i, options.depth);
    windows.shift.clear();
    const Shape grid = model.output().space;
    for (std::size_t axis = 0; axis < options.window.size(); ++axis) {
      const std::int64_t extent = options.window[axis];
      const bool spans = static_cast<int>(axis) < grid.rank() && extent >= grid[static_cast<int>(axis)];
      windows.shift.push_back(i % 2 == 0 || spans ? 0 : extent / 2);
    }
    const std::string path = concat("blocks.", i);
    model.append(path + ".attention", "model", [&](const LayerSite& site) {
      return windowed_half(site.at_root(path, site.input), block, windows);
    });
    model.append(path + ".mlp", "model",
                 [&](const LayerSite& site) { return mlp_half(site.at_root(path, site.input), block); });
  }
  model.append("decoder", "model",
               [&](const LayerSite& site) { return decoder(site, options, model.description()); });
}

}  // namespace jigsaw::inline layers
