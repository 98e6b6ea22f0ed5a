#pragma once
#include "config/keys.h"
#include "layers/activation.h"
#include "layers/model.h"

namespace jigsaw::inline layers {

/// How a vision transformer knows where its patches lie.
enum class VitPositions : std::uint8_t { kNone, kLearned, kSinCos, kRotary };

/// Vision transformer (Dosovitskiy et al. 2021) for fields: patches, a linear encoder, positions, transformer
/// blocks, a last LayerNorm and a linear decoder back to points.
struct VitOptions {
  std::vector<std::int64_t> patch;
  std::int64_t embed_dim = 0;
  std::int64_t depth = 0;
  std::int64_t heads = 0;
  double mlp_ratio = 4.0;
  double dropout = 0.0;
  double layer_scale = 0.0;
  double drop_path = 0.0;
  double attention_dropout = 0.0;
  VitPositions positions = VitPositions::kLearned;
  std::vector<std::int64_t> patch_kernel;
  bool circular = false;
  bool time_embedding = false;
  bool final_norm = true;
  bool zero_decoder = false;
  ActivationKind activation = ActivationKind::kGelu;
};
void declare(Keys<VitOptions>& keys);

/// Parameters: encoder.*, position, time.* (TimeEmbedding), blocks.<i>.norm1.*, blocks.<i>.attention.*,
/// blocks.<i>.norm2.*, blocks.<i>.mlp.*, norm.*, decoder.*.
void append_vit(Model& model, const VitOptions& options);

/// Swin-style transformer (Liu et al. 2021) at one resolution: as a ViT, but with attention inside windows,
/// which every other block shifts by half a window, but not along an axis that one window spans (as
/// torchvision's). Windows know where their points lie to one another, so
/// that no positions are added.
struct SwinOptions {
  std::vector<std::int64_t> patch;
  std::int64_t embed_dim = 0;
  std::int64_t depth = 0;
  std::int64_t heads = 0;
  std::vector<std::int64_t> window;
  bool circular = false;
  double mlp_ratio = 4.0;
  double dropout = 0.0;
  double layer_scale = 0.0;
  double drop_path = 0.0;
  double attention_dropout = 0.0;
  std::vector<std::int64_t> patch_kernel;
  bool time_embedding = false;
  bool final_norm = true;
  bool zero_decoder = false;
  ActivationKind activation = ActivationKind::kGelu;
};
void declare(Keys<SwinOptions>& keys);

/// Parameters: as append_vit(), with blocks.<i>.attention.relative_position_bias_table, and no position.
void append_swin(Model& model, const SwinOptions& options);

}  // namespace jigsaw::inline layers
