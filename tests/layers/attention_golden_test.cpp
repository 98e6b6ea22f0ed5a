// Attention, transformer blocks and positions in float64 against PyTorch's numbers, on one rank and on
// meshes.
#include <gtest/gtest.h>

#include "base/error.h"
#include "layers/layer_golden.h"
#include "layers/positions.h"
#include "layers/transformer.h"
#include "layers/windowed_attention.h"
#include "support/golden_file.h"

namespace jigsaw {
namespace attention_golden_test {

using testing::check_layer;
using testing::GoldenFile;
using testing::layer;
using testing::read_layer;

constexpr const char* kFile = "attention.h5";

TEST(GoldenAttention, MultiHeadAttention) {
  check_layer(
      read_layer(kFile, "attention", {2, 3, 5, 6}, layer<MultiHeadAttention>(MultiHeadAttentionOptions{3})));
  check_layer(
      read_layer(kFile, "attention_1d", {3, 7, 8}, layer<MultiHeadAttention>(MultiHeadAttentionOptions{2})));
  check_layer(read_layer(kFile, "attention_3d", {1, 2, 3, 3, 4},
                         layer<MultiHeadAttention>(MultiHeadAttentionOptions{1})));
}

TEST(GoldenAttention, RotaryPositions) {
  const MultiHeadAttentionOptions options{.heads = 2, .rotary = true, .rotary_base = 100};
  check_layer(read_layer(kFile, "rotary_attention", {2, 4, 3, 16}, layer<MultiHeadAttention>(options)));
}

TEST(GoldenAttention, TransformerBlock) {
  TransformerBlockOptions options;
  options.heads = 2;
  options.mlp_ratio = 1.5;
  check_layer(read_layer(kFile, "transformer_block", {2, 3, 5, 6},
                         [options](const LayerSite& site) { return transformer_block(site, options); }));
}

TEST(GoldenAttention, TransformerBlockWithLayerScale) {
  TransformerBlockOptions options;
  options.heads = 2;
  options.mlp_ratio = 1.5;
  options.layer_scale = 0.1;
  check_layer(read_layer(kFile, "transformer_block_scaled", {2, 3, 5, 6},
                         [options](const LayerSite& site) { return transformer_block(site, options); }));
}

TEST(GoldenAttention, SinCosPositions) {
  check_layer(read_layer(kFile, "sincos_positions", {2, 3, 5, 12}, layer<SinCosPositions>(SinCosOptions{})));
}

TEST(GoldenAttention, InsideWindows) {
  WindowedAttentionOptions options{2, {2, 3}, {}, false};
  check_layer(read_layer(kFile, "windowed_attention", {2, 4, 9, 6}, layer<WindowedAttention>(options)));
  options.shift = {1, 2};
  check_layer(
      read_layer(kFile, "windowed_attention_shifted", {2, 4, 9, 6}, layer<WindowedAttention>(options)));
  options.shift = {1, 1};
  options.circular = true;
  check_layer(
      read_layer(kFile, "windowed_attention_circular", {2, 4, 9, 6}, layer<WindowedAttention>(options)));
}

TEST(GoldenAttention, EveryLayerOfTheFileIsTested) {
  const std::vector<std::string> expected = {"attention",
                                             "attention_1d",
                                             "attention_3d",
                                             "rotary_attention",
                                             "sincos_positions",
                                             "transformer_block",
                                             "transformer_block_scaled",
                                             "windowed_attention",
                                             "windowed_attention_circular",
                                             "windowed_attention_shifted"};
  EXPECT_EQ(GoldenFile(kFile).names("/"), expected);
}

/// The message of building attention on so many channels of a 2-D field.
std::string refused(std::int64_t channels, const MultiHeadAttentionOptions& options) {
  ParameterBlock block("layer");
  try {
    const MultiHeadAttention layer({block, "", {{2, 3}, channels}, "model.layers[1]"}, options);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(MultiHeadAttentionHeads, MustCutTheWidth) {
  EXPECT_NE(refused(96, {5}).find("model.layers[1].heads must cut the width 96"), std::string::npos)
      << refused(96, {5});
  EXPECT_NE(refused(96, {5}).find("use 4"), std::string::npos) << refused(96, {5});
  EXPECT_NE(refused(1024, {2}).find("use 4"), std::string::npos) << refused(1024, {2});
  MultiHeadAttentionOptions rotary{4};
  rotary.rotary = true;
  EXPECT_EQ(refused(96, rotary), "");
  EXPECT_NE(refused(24, rotary).find("multiples of 4"), std::string::npos) << refused(24, rotary);
  EXPECT_NE(refused(6, rotary).find("a width of 16 can be cut"), std::string::npos) << refused(6, rotary);
}

TEST(Windows, MustTileTheGrid) {
  ParameterBlock block("layer");
  const LayerSite site{block, "", {{12, 35}, 8}, "model"};
  const auto refusal = [&](const WindowedAttentionOptions& options) -> std::string {
    try {
      const WindowedAttention layer(site, options);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(refusal({2, {5, 6}}).find("model.window [5, 6] does not tile the grid [12, 35]; use [4, 5]"),
            std::string::npos)
      << refusal({2, {5, 6}});
  EXPECT_NE(refusal({2, {4, 5}, {4, 0}}).find("model.shift [4, 0] must be less than the window [4, 5]"),
            std::string::npos)
      << refusal({2, {4, 5}, {4, 0}});
  EXPECT_NE(refusal({2, {4}}).find("one entry per spatial axis"), std::string::npos);
  EXPECT_EQ(refusal({2, {4, 5}, {2, 2}}), "");
}

}  // namespace attention_golden_test
}  // namespace jigsaw
