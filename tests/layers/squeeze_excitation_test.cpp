// Squeeze and excitation beside PyTorch's numbers, on one rank and on meshes.
#include "layers/squeeze_excitation.h"

#include <gtest/gtest.h>

#include "layers/layer_golden.h"
#include "support/golden_file.h"

namespace jigsaw {
namespace {

using testing::check_layer;
using testing::GoldenFile;
using testing::layer;
using testing::LayerGolden;
using testing::read_layer;

LayerGolden golden(const std::string& name, const Shape& field, const SqueezeExcitationOptions& options) {
  return read_layer("squeeze_excitation.h5", name, field, layer<SqueezeExcitation>(options));
}

TEST(SqueezeExcitation, IsTorchsOnEveryMesh) {
  check_layer(golden("1d", {3, 7, 6}, {0.5}));
  check_layer(golden("2d", {2, 5, 7, 6}, {0.5}));
  check_layer(golden("3d", {2, 4, 3, 5, 6}, {1.0 / 3, ActivationKind::kRelu}));
  EXPECT_EQ(GoldenFile("squeeze_excitation.h5").names("/").size(), 3U);
}

TEST(SqueezeExcitation, GradientsAreCentralDifferences) {
  check_differences(golden("1d", {3, 7, 6}, {0.5}));
}

TEST(SqueezeExcitation, HasAtLeastOneHiddenNumber) {
  ParameterBlock block("layer");
  const SqueezeExcitation tiny({block, "", {{4, 4}, 3}, "layer"}, {});
  EXPECT_EQ(tiny.output().to_string(), (FieldShape{{4, 4}, 3}).to_string());
  EXPECT_EQ(block.parameters().at(0)->shape(), (Shape{1, 3}));
}

}  // namespace
}  // namespace jigsaw
