#pragma once
#include "layers/activation.h"
#include "layers/model.h"
#include "layers/spatial_keys.h"

namespace jigsaw::inline layers {

/// Levels of the least U-Net that has one to supervise beside the finest.
inline constexpr std::size_t kLeastSupervisedLevels = 4;

/// U-Net (Ronneberger et al. 2015), of 1 to 3 spatial dims: at each level two of (convolution, group norm,
/// activation), the next level on half the points, back by doubling them, skips by concatenation, and a 1 × 1
/// head. Extents that a stride does not divide are rounded up on the way down and cropped on the way up.
/// Levels may have strides, kernels and numbers of convolutions of their own, as nnU-Net (Isensee et al.
/// 2021) plans them for volumes whose slices are thick. The encoder may have residual blocks in place of
/// convolutions: ResidualEncoderUNet of dynamic_network_architectures, with its BasicBlockD.
struct UNetOptions {
  std::int64_t base_width = 0;
  std::int64_t levels = 0;
  std::int64_t most_width = 0;  ///< 0: no end
  std::vector<std::int64_t> widths;
  Extents kernel = {3};
  std::vector<Extents> kernels;      ///< of each level; empty: kernel
  std::vector<Extents> strides;      ///< from the level above to each, of the finest 1; empty: 2
  std::vector<std::int64_t> blocks;  ///< residual ones of each level of the encoder; empty: convolutions
  std::vector<std::int64_t> convolutions = {2};
  std::vector<std::int64_t> decoder_convolutions;  ///< of all levels but the coarsest; empty: convolutions
  std::optional<std::int64_t> norm_groups = 8;     ///< nothing: as many as channels
  std::string down = "max_pool";
  std::string up = "nearest";
  Edges padding_mode = {Edge::kZero};
  bool zero_head = false;
  bool deep_supervision = false;
  ActivationKind activation = ActivationKind::kGelu;
};
void declare(Keys<UNetOptions>& keys);

/// Parameters, per level i from the finest on: encoder.i.conv1, .norm1, .conv2, .norm2, … (and encoder.i.down
/// where it is a convolution of its own); decoder.i.conv1, .norm1, .conv2, .norm2, … for all but the coarsest
/// (and decoder.i.up where it is a transposed convolution); head; with "prelu" .activation1.slope and so on
/// beside the norms. Convolutions as torch.nn.Conv, norms as torch.nn.GroupNorm. With residual blocks the
/// encoder has encoder.0.stem.conv, .norm, then encoder.i.block1.conv1, .norm1, .conv2, .norm2 and, where
/// channels change, .skip.conv (without bias), .skip.norm, .block2 and so on. With deep supervision
/// decoder.i.head, as head, of all levels between the finest and the two coarsest; a side of the model.
void append_unet(Model& model, const UNetOptions& options);

}  // namespace jigsaw::inline layers
