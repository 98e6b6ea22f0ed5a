#pragma once
#include "config/keys.h"
#include "layers/activation.h"
#include "layers/model.h"

namespace jigsaw::inline layers {

/// WeatherMixer (Kieckhefen et al., arXiv 2507.05753): patches, a linear encoder, blocks of token mixing and
/// channel mixing with LayerNorm before and a residual around each, a linear decoder, and a last linear map
/// over [output, input] channels.
struct WeatherMixerOptions {
  std::vector<std::int64_t> patch;
  std::int64_t embed_dim = 0;
  std::int64_t depth = 0;
  double token_hidden_ratio = 0.5;
  double channel_hidden_ratio = 1.0;
  double dropout = 0.0;
  std::vector<std::int64_t> patch_kernel;
  bool circular = false;
  bool positions = false;
  bool time_embedding = false;
  bool final_norm = false;
  bool zero_decoder = false;
  bool output_map = true;
  ActivationKind activation = ActivationKind::kGelu;
};
void declare(Keys<WeatherMixerOptions>& keys);

/// Parameters: encoder.*, position, time.* (TimeEmbedding), blocks.<i>.token_norm.*,
/// blocks.<i>.token_mixing.*, blocks.<i>.channel_norm.*, blocks.<i>.channel_mixing.*, norm.*, decoder.*,
/// output_map.output.weight [C, C], output_map.input.weight [C, Cin], output_map.bias [C].
void append_weathermixer(Model& model, const WeatherMixerOptions& options);

}  // namespace jigsaw::inline layers
