#include "layers/sfno.h"

#include <algorithm>

#include "base/text.h"
#include "config/config.h"
#include "layers/layer_norm.h"
#include "layers/limits.h"
#include "layers/mixing.h"
#include "layers/positions.h"
#include "layers/residual.h"
#include "layers/spherical.h"
#include "layers/time_embedding.h"
#include "layers/transformer.h"

namespace jigsaw::inline layers {

void declare(Keys<SfnoOptions>& keys) {
  using O = SfnoOptions;
  keys.add("embed_dim", &O::embed_dim)
      .required()
      .range(1, kMostChannels)
      .doc("Width: channels of each point inside the model.");
  keys.add("depth", &O::depth).required().range(1, kMostBlocks).doc("Number of blocks.");
  keys.choice("latitudes", &O::latitudes, rows_choices()).doc("Where the rows of the data's grid lie.");
  keys.add("scale", &O::scale)
      .range(1, kMostPoints)
      .doc("The blocks' grid, a Gaussian one, has so many times fewer rows and columns; 1: the data's own.");
  keys.add("degrees", &O::degrees)
      .range(0, kMostPoints)
      .doc(
          "Degrees of spherical harmonics, and orders, that the blocks and the ways to their grid and back "
          "work with; 0: as many as sums over the grids give exactly.");
  declare_halves(keys);
  keys.add("positions", &O::positions)
      .doc("Whether a learned vector is added at each point of the blocks' grid.");
  keys.add("time_embedding", &O::time_embedding)
      .doc("Whether an embedding of the input's times, as data.forcings tell them, is added at each point.");
  keys.add("final_norm", &O::final_norm).doc("Whether a LayerNorm stands behind the last block.");
  keys.add("input_skip", &O::input_skip).doc("Whether the decoder sees the input beside what blocks made.");
  keys.add("zero_decoder", &O::zero_decoder)
      .doc("Whether the decoder starts at zero, so that the untrained model predicts no change.");
}

namespace {

/// Where the blocks work.
GlobalGrid inner_grid(const SfnoOptions& options, const GlobalGrid& data) {
  if (options.scale == 1) return data;
  const auto fewer = [&](std::int64_t points) { return (points + options.scale - 1) / options.scale; };
  return {GlobalRows::kGauss, fewer(data.latitudes), fewer(data.longitudes)};
}

SphericalResampleOptions resampling(const GlobalGrid& from, const GlobalGrid& to, std::int64_t degrees) {
  return {{to.latitudes, to.longitudes}, from.rows, to.rows, degrees};
}

LayerPtr sfno_encoder(const LayerSite& site, const SfnoOptions& options) {
  const GlobalGrid data = global_grid(site, options.latitudes), inner = inner_grid(options, data);
  if (inner.latitudes < 2 || inner.longitudes < 2) {
    site.error("scale", concat("can be at most ", std::min(data.latitudes, data.longitudes) - 1,
                               " on the grid ", site.input.space, ", so that 2 rows and columns are left"));
  }
  std::vector<LayerPtr> layers;
  layers.push_back(std::make_unique<ChannelMixing>(site, ChannelSizes{options.embed_dim, options.embed_dim},
                                                   0.0, options.activation));
  if (options.scale > 1) {
    layers.push_back(std::make_unique<SphericalResample>(site.at_root("", layers.back()->output()),
                                                         resampling(data, inner, options.degrees)));
  }
  if (options.positions) {
    layers.push_back(
        std::make_unique<LearnedPositions>(site.at_root("", layers.back()->output()), PositionOptions{}));
  }
  return with_time(site, options.time_embedding, std::make_unique<Chain>(std::move(layers)));
}

/// The norm behind the last block, and the way back to the data's grid.
LayerPtr sfno_end(const LayerSite& site, const SfnoOptions& options, const GlobalGrid& data) {
  std::vector<LayerPtr> layers;
  if (options.final_norm)
    layers.push_back(std::make_unique<LayerNorm>(site.at_root("norm", site.input), LayerNormOptions{}));
  if (options.scale > 1) {
    layers.push_back(std::make_unique<SphericalResample>(
        site, resampling(inner_grid(options, data), data, options.degrees)));
  }
  return std::make_unique<Chain>(std::move(layers));
}

}  // namespace

void append_sfno(Model& model, const SfnoOptions& options) {
  model.append("encoder", "model", [&](const LayerSite& site) { return sfno_encoder(site, options); });
  const Shape& space = model.description().space;
  const GlobalGrid data{options.latitudes, space[0], space[1]};
  TransformerBlockOptions block;
  block.mlp_ratio = options.mlp_ratio;
  block.dropout = options.dropout;
  block.layer_scale = options.layer_scale;
  block.activation = options.activation;
  const SphericalConvolutionOptions filter{inner_grid(options, data).rows, options.degrees};
  for (std::int64_t i = 0; i < options.depth; ++i) {
    block.drop_path = drop_path_at(options.drop_path, i, options.depth);
    const std::string path = concat("blocks.", i);
    model.append(path + ".filter", "model", [&](const LayerSite& site) {
      return spherical_half(site.at_root(path, site.input), block, filter);
    });
    model.append(path + ".mlp", "model",
                 [&](const LayerSite& site) { return mlp_half(site.at_root(path, site.input), block); });
  }
  if (options.final_norm || options.scale > 1)
    model.append("end", "model", [&](const LayerSite& site) { return sfno_end(site, options, data); });
  if (options.input_skip) model.join(0, "model");
  model.append("decoder", "model", [&](const LayerSite& site) {
    return std::make_unique<ChannelMixing>(
        site, ChannelSizes{options.embed_dim, model.description().output_channels, options.zero_decoder}, 0.0,
        options.activation);
  });
}

}  // namespace jigsaw::inline layers
