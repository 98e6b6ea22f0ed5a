#include "layers/registry.h"

#include <functional>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "config/config.h"
#include "layers/batch_norm.h"
#include "layers/concat_skip.h"
#include "layers/convolution.h"
#include "layers/group_norm.h"
#include "layers/layer_norm.h"
#include "layers/layer_scale.h"
#include "layers/limits.h"
#include "layers/linear.h"
#include "layers/mixing.h"
#include "layers/multi_head_attention.h"
#include "layers/patches.h"
#include "layers/pointwise_layers.h"
#include "layers/pooling.h"
#include "layers/positions.h"
#include "layers/resampling.h"
#include "layers/residual.h"
#include "layers/rms_norm.h"
#include "layers/sequential.h"
#include "layers/sfno.h"
#include "layers/spherical.h"
#include "layers/squeeze_excitation.h"
#include "layers/time_embedding.h"
#include "layers/transformer.h"
#include "layers/unet.h"
#include "layers/vit.h"
#include "layers/weathermixer.h"

namespace jigsaw::inline layers {

namespace {

using Build = std::function<LayerPtr(const Tagged&, const LayerSite&, const ModelDescription&)>;

class Zoo {
 public:
  Zoo() : types_("layer") {}

  template <typename L, typename Options>
  void add(const char* name, const char* doc) {
    types_.add<Options>(name, doc);
    builds_[name] = [](const Tagged& layer, const LayerSite& site, const ModelDescription&) -> LayerPtr {
      return std::make_unique<L>(site, layer.options<Options>());
    };
  }
  template <typename Options>
  void add(const char* name, const char* doc, Build build) {
    types_.add<Options>(name, doc);
    builds_[name] = std::move(build);
  }

  TagRegistry& types() { return types_; }
  const Build& build(const std::string& name) const { return builds_.at(name); }

 private:
  TagRegistry types_;
  std::map<std::string, Build> builds_;
};

std::unique_ptr<Chain> build_chain(const std::vector<Tagged>& inner_layers, const LayerSite& site,
                                   const ModelDescription& description) {
  std::vector<LayerPtr> layers;
  FieldShape shape = site.input;
  for (const Tagged& inner : inner_layers) {
    const std::string index = std::to_string(layers.size());
    LayerSite place = site.inner(index, shape);
    place.key = concat(site.key, ".layers[", index, "]");
    if (layers.empty()) place.time_channels = site.time_channels;
    layers.push_back(build_layer(inner, place, description));
    shape = layers.back()->output();
  }
  return std::make_unique<Chain>(std::move(layers));
}

LayerPtr build_residual(const Tagged& layer, const LayerSite& site, const ModelDescription& description) {
  std::unique_ptr<Chain> chain = build_chain(layer.options<ResidualOptions>().layers, site, description);
  const FieldShape& shape = chain->output();
  if (!(shape.space == site.input.space) || shape.channels != site.input.channels) {
    site.error("layers", concat("must end with the shape they began with: ", site.input.to_string(), ", not ",
                                shape.to_string()));
  }
  if (const std::string rows = contradiction(shape, site.input); !rows.empty())
    site.error("layers", "end with " + rows);
  return std::make_unique<Residual>(std::move(chain));
}

LayerPtr build_patch_recover(const Tagged& layer, const LayerSite& site,
                             const ModelDescription& description) {
  PatchRecoverOptions options = layer.options<PatchRecoverOptions>();
  if (options.channels == 0) options.channels = description.output_channels;
  if (options.grid.empty()) options.grid = {description.space.begin(), description.space.end()};
  return std::make_unique<PatchRecover>(site, options);
}

LayerPtr build_time_embedding(const Tagged& layer, const LayerSite& site,
                              const ModelDescription& description) {
  if (site.time_channels.empty()) {
    site.error(
        "type",
        "\"time_embedding\" must stand first in a model, and needs \"time_of_day\" or \"day_of_year\" in "
        "data.forcings");
  }
  return std::make_unique<TimeEmbedding>(
      site, build_chain(layer.options<TimeEmbeddingOptions>().layers, site, description));
}

void add_activation(Zoo& zoo, const char* name, const char* doc, ActivationKind activation) {
  zoo.add<ActivationOptions>(
      name, doc, [activation](const Tagged&, const LayerSite& site, const ModelDescription&) -> LayerPtr {
        return std::make_unique<ActivationLayer>(site, activation);
      });
}

Zoo& zoo() {
  static Zoo the_zoo;
  static const bool filled = [] {
    the_zoo.add<LayerNorm, LayerNormOptions>("layer_norm", "Normalises the channels of each point.");
    the_zoo.add<RmsNorm, RmsNormOptions>("rms_norm",
                                         "Scales the channels of each point to a mean square of 1.");
    the_zoo.add<GroupNorm, GroupNormOptions>("group_norm", "Normalises groups of channels over all points.");
    the_zoo.add<InstanceNorm, InstanceNormOptions>("instance_norm",
                                                   "Normalises each channel over all points.");
    the_zoo.add<BatchNorm, BatchNormOptions>("batch_norm",
                                             "Normalises each channel over all points of the global batch.");
    the_zoo.add<LayerScale, LayerScaleOptions>("layer_scale", "Multiplies each channel by a learned factor.");
    the_zoo.add<SqueezeExcitation, SqueezeExcitationOptions>(
        "squeeze_excitation", "Multiplies each channel by a factor that follows from all channels' means.");
    the_zoo.add<Linear, LinearOptions>("linear", "A linear map of the channels of each point.");
    add_activation(the_zoo, "gelu", "x·Φ(x), elementwise.", ActivationKind::kGelu);
    add_activation(the_zoo, "relu", "max(x, 0), elementwise.", ActivationKind::kRelu);
    add_activation(the_zoo, "silu", "x·σ(x), elementwise.", ActivationKind::kSilu);
    add_activation(the_zoo, "tanh", "The hyperbolic tangent, elementwise.", ActivationKind::kTanh);
    add_activation(the_zoo, "sigmoid", "σ(x) = 1/(1 + e^(−x)), elementwise.", ActivationKind::kSigmoid);
    add_activation(the_zoo, "mish", "x·tanh(ln(1 + e^x)), elementwise.", ActivationKind::kMish);
    add_activation(the_zoo, "leaky_relu", "x where it is positive, elsewhere 0.01·x, elementwise.",
                   ActivationKind::kLeakyRelu);
    add_activation(the_zoo, "prelu", "x where it is positive, elsewhere x times a learned slope.",
                   ActivationKind::kPrelu);
    the_zoo.add<DropoutLayer, DropoutOptions>("dropout", "Sets random elements to zero in training.");
    the_zoo.add<DropPath, DropPathOptions>("drop_path", "Sets random samples to zero in training.");
    the_zoo.add<ChannelMixing, ChannelMixingOptions>("channel_mixing",
                                                     "An MLP over the channels of each point.");
    the_zoo.add<TokenMixing, TokenMixingOptions>("token_mixing", "An MLP over all points of each channel.");
    the_zoo.add<PatchEmbedOptions>("patch_embed", "Makes one vector of each patch of points.",
                                   [](const Tagged& layer, const LayerSite& site, const ModelDescription&) {
                                     return patch_embed(site, layer.options<PatchEmbedOptions>());
                                   });
    the_zoo.add<TimeEmbeddingOptions>("time_embedding",
                                      "Adds an embedding of the input's time to what its layers make of it.",
                                      build_time_embedding);
    the_zoo.add<LearnedPositions, PositionOptions>("positions", "Adds a learned vector at each point.");
    the_zoo.add<SinCosPositions, SinCosOptions>("sincos_positions",
                                                "Adds sines and cosines of each point's coordinates.");
    the_zoo.add<MultiHeadAttention, MultiHeadAttentionOptions>("multi_head_attention",
                                                               "Every point attends to every point.");
    the_zoo.add<WindowedAttention, WindowedAttentionOptions>("windowed_attention",
                                                             "Points attend to the points of their window.");
    the_zoo.add<ChannelMixing, ChannelMixingOptions>("mlp", "The same as channel_mixing.");
    the_zoo.add<TransformerBlockOptions>(
        "transformer_block", "Attention and an MLP, each with a LayerNorm before and a residual around it.",
        [](const Tagged& layer, const LayerSite& site, const ModelDescription&) {
          return transformer_block(site, layer.options<TransformerBlockOptions>());
        });
    the_zoo.add<PatchRecoverOptions>("patch_recover", "Makes a patch of points of each vector.",
                                     build_patch_recover);
    the_zoo.add<ConvolutionLayer, ConvolutionOptions>(
        "conv", "A convolution over all spatial axes, with padding also around the globe.");
    the_zoo.add<TransposedConvolutionLayer, TransposedConvolutionOptions>(
        "conv_transpose", "The adjoint of a convolution: many points of each one.");
    the_zoo.add<PoolingLayer, MaxPoolOptions>("max_pool", "The largest value of each window.");
    the_zoo.add<PoolingLayer, AveragePoolOptions>("avg_pool", "The mean of each window.");
    the_zoo.add<GlobalAveragePool, GlobalAveragePoolOptions>("global_avg_pool", "The mean over space.");
    the_zoo.add<Upsample, UpsampleOptions>("upsample", "Another grid, by the nearest point or linearly.");
    the_zoo.add<SphericalConvolution, SphericalConvolutionOptions>(
        "spherical_conv", "A convolution on the sphere, by its harmonics.");
    the_zoo.add<SphericalResample, SphericalResampleOptions>("spherical_resample",
                                                             "Another global grid, by spherical harmonics.");
    the_zoo.add<Pad, PadOptions>("pad", "Points added at the ends of the spatial axes.");
    the_zoo.add<ConcatSkipOptions>(
        "concat_skip", "Sets the result of its layers behind their input, over channels.",
        [](const Tagged& layer, const LayerSite& site, const ModelDescription& description) -> LayerPtr {
          return std::make_unique<ConcatSkip>(
              site, build_chain(layer.options<ConcatSkipOptions>().layers, site, description));
        });
    the_zoo.add<ResidualOptions>("residual", "Adds the result of its layers to their input.", build_residual);
    the_zoo.add<RepeatOptions>(
        "repeat", "Its layers several times over, each time with parameters of their own.",
        [](const Tagged&, const LayerSite& site, const ModelDescription&) -> LayerPtr {
          site.error("type", "\"repeat\" stands among the layers of a model, not inside a layer");
        });
    return true;
  }();
  static_cast<void>(filled);
  return the_zoo;
}

/// The named models, by what appends their layers.
class Models {
 public:
  using Append = std::function<void(Model&, const Tagged&)>;

  Models() : types_("model") {
    add("weathermixer", "MLP-Mixer over patches of the fields (Jigsaw's network).", append_weathermixer);
    add("vit", "Vision transformer over patches of the fields.", append_vit);
    add("swin", "Transformer with attention inside shifted windows.", append_swin);
    add("unet", "U-Net: convolutions on ever coarser grids and back, with skips.", append_unet);
    add("sfno", "Spherical Fourier neural operator: convolutions on the sphere by its harmonics.",
        append_sfno);
    add("sequential", "Any chain of layers.", append_layers);
  }
  const TagRegistry& types() const { return types_; }
  const Append& at(const std::string& name) const { return appends_.at(name); }

 private:
  template <typename Options>
  void add(const char* name, const char* doc, void (*append)(Model&, const Options&)) {
    types_.add<Options>(name, doc);
    appends_[name] = [append](Model& model, const Tagged& tagged) {
      append(model, tagged.options<Options>());
    };
  }

  TagRegistry types_;
  std::map<std::string, Append> appends_;
};

const Models& models() {
  static const Models instance;
  return instance;
}

}  // namespace

const TagRegistry& layer_types() {
  return zoo().types();
}

/// Grids grow from layer to layer, whatever bounds each key has.
LayerPtr build_layer(const Tagged& layer, const LayerSite& site, const ModelDescription& description) {
  LayerPtr built = zoo().build(layer.type())(layer, site, description);
  built->keep_rows(site.input);
  const FieldShape& made = built->output();
  if (made.space.count() > kMostElements / made.channels)
    throw ConfigError(concat(site.key, " makes ", made.to_string(), ", more than any machine holds"));
  return built;
}

const TagRegistry& model_types() {
  return models().types();
}
void append_model(Model& model, const Tagged& options) {
  models().at(options.type())(model, options);
}

}  // namespace jigsaw::inline layers
