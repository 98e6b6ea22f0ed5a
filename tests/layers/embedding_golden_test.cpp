// Overlapping patches and the embedding of time in float64: against PyTorch's numbers and central
// differences, on one rank and on meshes.
#include <gtest/gtest.h>

#include "base/error.h"
#include "config/config.h"
#include "layers/layer_golden.h"
#include "layers/model.h"
#include "layers/patches.h"
#include "layers/registry.h"
#include "layers/time_embedding.h"
#include "support/golden_file.h"

namespace jigsaw {
namespace embedding_golden_test {

struct ModelSection {
  Tagged model;
};
void declare(Keys<ModelSection>& keys) {
  keys.tagged("model", &ModelSection::model, model_types).required().doc("The network.");
}

using testing::GoldenFile;
using testing::LayerGolden;

constexpr const char* kFile = "embeddings.h5";

LayerGolden overlapping(const std::string& name, const Shape& field, const PatchEmbedOptions& options) {
  return testing::read_layer(kFile, name, field,
                             [options](const LayerSite& site) { return patch_embed(site, options); });
}

LayerGolden time_embedding() {
  LayerGolden golden =
      testing::read_layer(kFile, "time_embedding", {2, 7, 10, 5}, [](const LayerSite& site) -> LayerPtr {
        return std::make_unique<TimeEmbedding>(site, patch_embed(site.inner("0", site.input), {{3, 4}, 6}));
      });
  golden.time_channels = {1, 3, 4};
  return golden;
}

std::vector<LayerGolden> all() {
  return {overlapping("overlapping_patch_embed", {2, 7, 10, 3}, {{3, 4}, 5, {6, 7}}),
          overlapping("overlapping_patch_embed_1d", {3, 11, 2}, {{2}, 5, {5}}),
          overlapping("overlapping_patch_embed_3d", {1, 5, 4, 7, 2}, {{2, 2, 2}, 5, {3, 4, 3}}),
          overlapping("overlapping_patch_embed_circular", {1, 7, 12, 3}, {{3, 4}, 5, {3, 9}, true}),
          time_embedding()};
}

TEST(GoldenEmbedding, AreAsPyTorchSays) {
  std::vector<std::string> names;
  for (const LayerGolden& golden : all()) {
    names.push_back(golden.name);
    testing::check_layer(golden);
  }
  EXPECT_EQ(GoldenFile(kFile).names("/"), names);
}

TEST(GoldenEmbedding, OnSixAndEightRanks) {
  for (const LayerGolden& golden : all()) {
    std::vector<int> domain(static_cast<std::size_t>(golden.field.rank() - 2), 1);
    domain.back() = 3;
    testing::check_layer_on(golden, domain, 2);
    domain.back() = 2;
    domain.front() = domain.size() > 1 ? 2 : 4;
    testing::check_layer_on(golden, domain, 2);
  }
}

TEST(GoldenEmbedding, GradientsAreDifferences) {
  for (const LayerGolden& golden : all()) testing::check_differences(golden);
}

/// What is said of a model of a field of 7 × 12 points whose forcings do not tell the time, or do.
std::string refusal(const Json& model, const std::vector<std::int64_t>& time_channels = {}) {
  try {
    build_model(parse<ModelSection>({{"model", model}}).model, {{7, 12}, 3, 3, time_channels});
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

Json vit(const Json& more) {
  Json model = {{"type", "vit"}, {"patch", {3, 4}}, {"embed_dim", 4}, {"depth", 1}, {"heads", 2}};
  model.update(more);
  return model;
}

Json sequence(const Json& embedding) {
  return {{"type", "sequential"}, {"layers", {embedding, {{"type", "patch_recover"}, {"patch", {3, 4}}}}}};
}

TEST(PatchKernel, MustCoverThePatch) {
  EXPECT_EQ(refusal(vit({{"patch_kernel", {5, 7}}})), "");
  EXPECT_EQ(refusal(vit({{"patch_kernel", {5, 7}}, {"circular", true}})), "");
  EXPECT_EQ(refusal(vit({{"patch_kernel", {2, 7}}})),
            "model.patch_kernel [2, 7] must cover the patch [3, 4] along each axis; use [3, 7]");
  EXPECT_EQ(refusal(vit({{"patch_kernel", {7}}})),
            "model.patch_kernel [7] must cover the patch [3, 4] along each axis; use [7, 4]");
  const Json layer = {{"type", "patch_embed"}, {"patch", {3, 4}}, {"embed_dim", 4}, {"patch_kernel", {3, 3}}};
  EXPECT_EQ(refusal(sequence(layer)),
            "model.layers[0].patch_kernel [3, 3] must cover the patch [3, 4] along each axis; use [3, 4]");
}

TEST(PatchKernel, GoesRoundACircleOfWholePatches) {
  EXPECT_EQ(refusal(vit({{"circular", true}})),
            "model.circular has no effect: it counts only where patch_kernel is given; leave it out");
  EXPECT_EQ(refusal(vit({{"patch", {3, 5}}, {"patch_kernel", {3, 9}}, {"circular", true}})),
            "model.circular needs a patch that divides the 12 points of the last axis; use 4 in place of 5");
  EXPECT_EQ(refusal(vit({{"patch_kernel", {3, 28}}, {"circular", true}})), "");
  EXPECT_EQ(
      refusal(vit({{"patch_kernel", {3, 29}}, {"circular", true}})),
      "model.patch_kernel must reach at most once round the 12 points of the last axis; use at most 28");
}

TEST(TimeEmbedding, NeedsForcingsThatTellTheTime) {
  EXPECT_EQ(refusal(vit({{"time_embedding", true}}), {2}), "");
  EXPECT_EQ(refusal(vit({{"time_embedding", true}})),
            "model.time_embedding needs \"time_of_day\" or \"day_of_year\" in data.forcings");
  const Json patches = {{"type", "patch_embed"}, {"patch", {3, 4}}, {"embed_dim", 4}};
  const Json embedding = {{"type", "time_embedding"}, {"layers", {patches}}};
  EXPECT_EQ(refusal(sequence(embedding), {2}), "");
  const std::string wanted =
      "type \"time_embedding\" must stand first in a model, and needs \"time_of_day\" or \"day_of_year\" in "
      "data.forcings";
  EXPECT_EQ(refusal(sequence(embedding)), "model.layers[0]." + wanted);
  const Json later = {{"type", "time_embedding"}, {"layers", {{{"type", "linear"}, {"features", 4}}}}};
  const Json second = {{"type", "sequential"}, {"layers", {patches, later}}};
  EXPECT_EQ(refusal(second, {2}), "model.layers[1]." + wanted);
}

}  // namespace embedding_golden_test
}  // namespace jigsaw
