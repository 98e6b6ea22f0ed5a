#pragma once
#include "config/keys.h"
#include "layers/activation.h"
#include "layers/model.h"
#include "layers/spherical_harmonics.h"

namespace jigsaw::inline layers {

/// Spherical Fourier neural operator (Bonev et al. 2023, arXiv 2306.03838) for fields around the globe: an
/// encoder of each point, blocks of a spherical convolution and an MLP on a coarser Gaussian grid, and a
/// decoder of each point that sees the input, too. Grids change by spherical harmonics.
struct SfnoOptions {
  std::int64_t embed_dim = 0;
  std::int64_t depth = 0;
  std::int64_t scale = 1;
  std::int64_t degrees = 0;
  GlobalRows latitudes = GlobalRows::kPolePoint;
  double mlp_ratio = 2.0;
  double dropout = 0.0;
  double layer_scale = 0.0;
  double drop_path = 0.0;
  ActivationKind activation = ActivationKind::kGelu;
  bool positions = false;
  bool time_embedding = false;
  bool final_norm = true;
  bool input_skip = true;
  bool zero_decoder = false;
};
void declare(Keys<SfnoOptions>& keys);

/// Parameters: encoder.fc1.*, encoder.fc2.* (linear), position, time.* (TimeEmbedding), blocks.<i>.norm1.*,
/// blocks.<i>.filter.* (SphericalConvolution), blocks.<i>.norm2.*, blocks.<i>.mlp.*, norm.*, decoder.fc1.*,
/// decoder.fc2.* (linear).
void append_sfno(Model& model, const SfnoOptions& options);

}  // namespace jigsaw::inline layers
