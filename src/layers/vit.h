#pragma once
#include "config/keys.h"
#include "layers/model.h"

namespace jigsaw {

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
  double attention_dropout = 0.0;
  VitPositions positions = VitPositions::kLearned;
  bool final_norm = true;
  bool zero_decoder = false;
};
void declare(Keys<VitOptions>& keys);

/// Parameters: encoder.*, position, blocks.<i>.norm1.*, blocks.<i>.attention.*, blocks.<i>.norm2.*,
/// blocks.<i>.mlp.*, norm.*, decoder.*.
void append_vit(Model& model, const VitOptions& options);

}  // namespace jigsaw
