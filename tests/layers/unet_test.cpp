// U-Nets against PyTorch's numbers and against themselves on meshes: odd extents at every level.
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/text.h"
#include "layers/unet_runs.h"
#include "support/golden_file.h"

namespace jigsaw {
namespace unet_test {

using namespace testing::unet_runs;
using testing::GoldenFile;
using testing::relative_difference;
using testing::Tensors;

// ---- PyTorch's numbers

ModelRun golden_run(const std::string& name, const Json& model, const Shape& field, std::int64_t outputs,
                    Tensors& expected, const std::string& golden = "unets.h5") {
  const GoldenFile file(golden);
  ModelRun run{model, field, outputs, file.values(name + "/input"), file.values(name + "/output_gradient")};
  for (const std::string& parameter : file.names(name + "/parameters")) {
    run.parameters[parameter] = file.values(name + "/parameters/" + parameter);
    expected[parameter] = file.values(name + "/parameter_gradients/" + parameter);
  }
  expected["output"] = file.values(name + "/output");
  expected["input"] = file.values(name + "/input_gradient");
  return run;
}

TEST(UNet, IsTorchs) {
  Tensors expected;
  const Json unet = {{"type", "unet"}, {"widths", {4, 6, 8}}, {"norm_groups", 2}};
  ModelRun run = golden_run("unet", unet, {3, 11, 14, 3}, 2, expected);
  for (const auto& [domain, tensor] : std::vector<std::pair<std::vector<int>, int>>{
           {{1, 1}, 1}, {{2, 1}, 1}, {{1, 1}, 3}, {{2, 2}, 1}, {{3, 1}, 2}, {{2, 2}, 2}}) {
    SCOPED_TRACE(concat("domain [", join(domain, ", "), "] tensor ", tensor));
    expect_equal(run_on(run, domain, tensor).tensors, expected, 1e-10);
  }
}

TEST(UNet, IsTorchsAroundTheCircleWithTransposedConvolutions) {
  Tensors expected;
  const Json unet = {{"type", "unet"},   {"base_width", 4},        {"widths", {4, 4}},
                     {"norm_groups", 2}, {"up", "conv_transpose"}, {"padding_mode", "circular"}};
  Json model = unet;
  model.erase("base_width");
  const ModelRun run = golden_run("unet_circular", model, {1, 9, 8, 2}, 3, expected);
  expect_equal(run_on(run, {1, 1}, 1).tensors, expected, 1e-10);
  expect_equal(run_on(run, {2, 3}, 1).tensors, expected, 1e-10);
}

TEST(UNet, OfVolumesIsTorchs) {
  Tensors expected;
  const Json unet = {{"type", "unet"}, {"widths", {4, 6}}, {"norm_groups", 2}};
  const ModelRun run = golden_run("unet_3d", unet, {1, 7, 5, 6, 2}, 1, expected);
  expect_equal(run_on(run, {1, 1, 1}, 1).tensors, expected, 1e-10);
  expect_equal(run_on(run, {2, 2, 1}, 2).tensors, expected, 1e-10);
}

const Json kPlanned = {{"type", "unet"},
                       {"widths", {2, 3, 4, 4}},
                       {"kernels", {{1, 3, 3}, 3, 3, {1, 3, 3}}},
                       {"strides", {1, {1, 2, 2}, 2, {1, 3, 2}}},
                       {"convolutions", {2, 3, 1, 2}},
                       {"decoder_convolutions", {1, 2, 1}},
                       {"norm_groups", "channels"},
                       {"down", "first_conv"},
                       {"up", "conv_transpose"},
                       {"activation", "leaky_relu"}};

TEST(UNet, AsPlannedForThickSlicesIsTorchs) {
  Tensors expected;
  const ModelRun run = golden_run("unet_planned", kPlanned, {2, 5, 13, 11, 2}, 3, expected);
  for (const auto& [domain, tensor] : std::vector<std::pair<std::vector<int>, int>>{
           {{1, 1, 1}, 1}, {{2, 1, 1}, 1}, {{1, 2, 2}, 1}, {{1, 3, 1}, 2}, {{2, 2, 1}, 1}}) {
    SCOPED_TRACE(concat("domain [", join(domain, ", "), "] tensor ", tensor));
    expect_equal(run_on(run, domain, tensor).tensors, expected, 1e-9);
  }
  expect_equal(run_on(run, {1, 1, 1}, 1, 2).tensors, expected, 1e-9);
}

const Json kResidual = {{"type", "unet"},
                        {"widths", {2, 3, 4, 4}},
                        {"kernels", {{1, 3, 3}, 3, 3, 3}},
                        {"strides", {1, {1, 2, 2}, 2, {2, 2, 1}}},
                        {"blocks", {1, 2, 2, 1}},
                        {"decoder_convolutions", {1, 2, 1}},
                        {"norm_groups", "channels"},
                        {"down", "first_conv"},
                        {"up", "conv_transpose"},
                        {"activation", "leaky_relu"}};

TEST(UNet, WithAResidualEncoderIsTorchs) {
  Tensors expected;
  const ModelRun run =
      golden_run("residual_unet", kResidual, {2, 5, 12, 9, 2}, 3, expected, "residual_unet.h5");
  EXPECT_EQ(expected.count("encoder.1.block1.skip.conv.weight"), 1U);
  EXPECT_EQ(expected.count("encoder.3.block1.skip.conv.weight"), 0U) << "pooled alone";
  for (const auto& [domain, tensor] : std::vector<std::pair<std::vector<int>, int>>{
           {{1, 1, 1}, 1}, {{2, 1, 1}, 1}, {{1, 2, 2}, 1}, {{1, 3, 1}, 2}, {{1, 1, 1}, 2}}) {
    SCOPED_TRACE(concat("domain [", join(domain, ", "), "] tensor ", tensor));
    expect_equal(run_on(run, domain, tensor).tensors, expected, 1e-9);
  }
  expect_equal(run_on(run, {1, 1, 1}, 1, 2).tensors, expected, 1e-9);
}

// ---- one function

TEST(UNet, WithResidualBlocksIsOneFunctionOnEveryMesh) {
  for (const std::string down : {"max_pool", "avg_pool", "conv", "first_conv"}) {
    const Json unet = {{"type", "unet"},
                       {"widths", {4, 6, 6}},
                       {"strides", {1, {1, 3}, 2}},
                       {"blocks", {1, 2, 1}},
                       {"convolutions", 1},
                       {"norm_groups", down == "conv" ? 0 : 2},
                       {"down", down},
                       {"padding_mode", {"zeros", "circular"}},
                       {"activation", down == "first_conv" ? "prelu" : "gelu"}};
    const ModelRun run{unet, {2, 11, 23, 3}, 2, {}, {}};
    const Tensors one = run_on(run, {1, 1}, 1).tensors;
    EXPECT_EQ(one.count("encoder.1.block2.conv2.bias"), 1U);
    EXPECT_EQ(one.count("encoder.1.block1.skip.conv.weight"), down == "conv" ? 0U : 1U);
    EXPECT_EQ(one.count("encoder.1.block1.activation2.slope"), down == "first_conv" ? 1U : 0U);
    for (const auto& [domain, tensor] :
         std::vector<std::pair<std::vector<int>, int>>{{{2, 1}, 1}, {{1, 3}, 1}, {{2, 1}, 2}}) {
      SCOPED_TRACE(concat(down, " domain [", join(domain, ", "), "] tensor ", tensor));
      expect_equal(run_on(run, domain, tensor).tensors, one, 1e-10);
    }
  }
}

TEST(UNet, WithStridesOfItsOwnIsOneFunctionOnEveryMesh) {
  for (const std::string down : {"max_pool", "avg_pool", "conv", "first_conv"}) {
    const Json unet = {{"type", "unet"},
                       {"base_width", 4},
                       {"levels", 3},
                       {"most_width", 6},
                       {"strides", {1, {1, 3}, {3, 2}}},
                       {"kernels", {3, {1, 5}, 1}},
                       {"convolutions", {1, 3, 2}},
                       {"norm_groups", 2},
                       {"down", down},
                       {"up", down == "conv" ? "linear" : "nearest"},
                       {"padding_mode", {"zeros", "circular"}}};
    const ModelRun run{unet, {2, 11, 22, 3}, 2, {}, {}};
    const Tensors one = run_on(run, {1, 1}, 1).tensors;
    EXPECT_EQ(one.at("encoder.2.conv2.bias").size(), 6U);
    EXPECT_EQ(one.count("decoder.1.conv3.bias"), 1U);
    for (const auto& [domain, tensor] :
         std::vector<std::pair<std::vector<int>, int>>{{{2, 1}, 1}, {{1, 3}, 1}, {{2, 2}, 1}}) {
      SCOPED_TRACE(concat(down, " domain [", join(domain, ", "), "] tensor ", tensor));
      expect_equal(run_on(run, domain, tensor).tensors, one, 1e-10);
    }
  }
}

/// What is said of a level is what is said of all: the same parameters, and the same numbers.
TEST(UNet, OfListsThatSayTheDefaultsIsTheSame) {
  const Json plain = {{"type", "unet"}, {"widths", {4, 6, 8}}, {"norm_groups", 2}};
  Json said = plain;
  said.update({{"kernels", {3, {3, 3}, 3}},
               {"strides", {1, 2, {2, 2}}},
               {"convolutions", {2, 2, 2}},
               {"decoder_convolutions", 2}});
  EXPECT_EQ(run_on({said, {1, 9, 10, 2}, 1, {}, {}}, {2, 1}, 1).tensors,
            run_on({plain, {1, 9, 10, 2}, 1, {}, {}}, {2, 1}, 1).tensors);
}

TEST(UNet, RefusesListsThatDoNotFit) {
  const auto message = [](const Json& changes) {
    Json model = {{"type", "unet"}, {"widths", {4, 4, 4}}, {"norm_groups", 0}};
    model.update(changes);
    try {
      const ModelDescription description{{8, 8}, 1, 1, {}, {}};
      build_model(parse<ModelSection>(Json{{"model", model}}).model, description);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const auto begins = [&](const Json& changes, const std::string& text) {
    EXPECT_EQ(message(changes).find(text), 0U) << message(changes);
  };
  EXPECT_EQ(message({{"strides", {1, 2, 2}}}), "");
  begins({{"strides", {2, 2}}}, "model.strides has 2 entries for 3 levels");
  begins({{"strides", {{1, 2}, 2, 2}}}, "model.strides must begin with 1");
  begins({{"strides", {1, {1, 2, 2}, 2}}}, "model.strides[1] has 3 entries for 2 spatial dims");
  begins({{"strides", {1, 8, 2}}}, "model.strides[2] leaves a grid of");
  begins({{"strides", {1, 0, 2}}}, "model.strides[1] must be");
  begins({{"strides", {1, Json::array(), 2}}}, "model.strides[1] has 0 entries for 2 spatial dims");
  begins({{"kernels", {Json::array(), 3, 3}}}, "model.kernels[0] has 0 entries for 2 spatial dims");
  begins({{"kernel", Json::array()}}, "model.kernel");
  begins({{"padding_mode", Json::array()}}, "model.padding_mode must be");
  begins({{"padding_mode", {"zeros", "zeros", "zeros"}}},
         "model.padding_mode has 3 entries for 2 spatial dims");
  begins({{"kernels", {3, 3}}}, "model.kernels has 2 entries for 3 levels");
  begins({{"kernels", {3, {3, 3, 1}, 3}}}, "model.kernels[1] has 3 entries for 2 spatial dims");
  begins({{"kernels", {3, 4, 3}}}, "model.kernels must be odd");
  begins({{"kernels", {3, 3, 3}}, {"kernel", 5}}, "model.kernels stand in place of kernel");
  begins({{"kernel", {3, 3, 3}}}, "model.kernel has 3 entries for 2 spatial dims");
  begins({{"convolutions", {1, 2}}}, "model.convolutions has 2 entries for 3 levels");
  begins({{"decoder_convolutions", {1, 2, 1}}}, "model.decoder_convolutions has 3 entries for 2 levels");
  begins({{"norm_groups", "channel"}}, "model.norm_groups must be");
  begins({{"blocks", {1, 2}}}, "model.blocks has 2 entries for 3 levels");
  begins({{"blocks", {1, 0, 2}}}, "model.blocks");
  begins({{"deep_supervision", true}}, "model.deep_supervision needs a model of 4 levels or more, not of 3");
}

TEST(UNet, IsOneFunctionOnEveryMeshWithOddExtents) {
  for (const std::string down : {"max_pool", "conv"}) {
    for (const std::string up : {"nearest", "conv_transpose", "linear"}) {
      if (down == "conv" && up != "linear") continue;
      const Json unet = {{"type", "unet"},
                         {"base_width", 4},
                         {"levels", 4},
                         {"norm_groups", 2},
                         {"down", down},
                         {"up", up},
                         {"padding_mode", {"reflect", "zeros"}}};
      const ModelRun run{unet, {2, 33, 49, 3}, 2, {}, {}};
      const Tensors one = run_on(run, {1, 1}, 1).tensors;
      for (const auto& [domain, tensor] : std::vector<std::pair<std::vector<int>, int>>{
               {{2, 1}, 1}, {{1, 3}, 1}, {{4, 1}, 1}, {{2, 3}, 1}, {{2, 2}, 2}}) {
        SCOPED_TRACE(concat(down, " ", up, " domain [", join(domain, ", "), "] tensor ", tensor));
        expect_equal(run_on(run, domain, tensor).tensors, one, 1e-10);
      }
      expect_equal(run_on(run, {1, 1}, 1, 2).tensors, one, 1e-10);
    }
  }
}

TEST(UNet, OfVolumesIsOneFunctionOnEveryMesh) {
  const Json unet = {{"type", "unet"}, {"widths", {2, 2, 2}}, {"norm_groups", 1}};
  const ModelRun run{unet, {1, 13, 9, 11, 1}, 1, {}, {}};
  const Tensors one = run_on(run, {1, 1, 1}, 1).tensors;
  for (const std::vector<int>& domain :
       std::vector<std::vector<int>>{{2, 1, 1}, {2, 2, 1}, {1, 3, 2}, {2, 2, 2}}) {
    expect_equal(run_on(run, domain, 1).tensors, one, 1e-10);
  }
}

TEST(UNet, OfAWholeHeadScanIsOneFunctionOnEveryMesh) {
  ModelRun run{{{"type", "unet"}, {"widths", {2, 4, 4}}, {"norm_groups", 2}}, {1, 91, 109, 91, 1}, 1, {}, {}};
  run.dtype = DType::kFloat32;
  const Tensors one = run_on(run, {1, 1, 1}, 1).tensors;
  for (const std::vector<int>& domain : std::vector<std::vector<int>>{{2, 1, 1}, {2, 2, 1}}) {
    SCOPED_TRACE(join(domain, " x "));
    const Tensors many = run_on(run, domain, 1).tensors;
    ASSERT_EQ(many.size(), one.size());
    for (const auto& [name, values] : one) {
      // In float32 sums of 900,000 numbers that cancel, as those of biases, have an error of their own.
      const bool cancels = name.find("bias") != std::string::npos;
      EXPECT_LE(relative_difference(many.at(name), values, cancels ? 100 : 1e-3), 1e-3) << name;
    }
  }
}

TEST(UNet, RecomputedBlocksGiveTheSameBitsAndHalveActivations) {
  ModelRun run{
      {{"type", "unet"}, {"base_width", 8}, {"levels", 3}, {"norm_groups", 2}}, {2, 33, 49, 3}, 2, {}, {}};
  const ModelRun::Result kept = run_on(run, {2, 1}, 1);
  run.recompute = true;
  const ModelRun::Result again = run_on(run, {2, 1}, 1);
  EXPECT_EQ(kept.tensors, again.tensors);
  EXPECT_LT(again.peak_activation_bytes[0], kept.peak_activation_bytes[0]);
}

// ---- other ways to say it

TEST(UNet, CanBeSaidAsSequential) {
  const auto convolutions = [](std::int64_t width, Json layers) {
    for (int i = 0; i < 2; ++i) {
      layers.push_back({{"type", "conv"}, {"features", width}, {"kernel", 3}, {"padding", 1}});
      layers.push_back({{"type", "group_norm"}, {"groups", 2}});
      layers.push_back({{"type", "gelu"}});
    }
    return layers;
  };
  const Json pool = {{"type", "max_pool"}, {"kernel", 2}, {"ceil_mode", true}};
  const Json up = {{"type", "upsample"}, {"scale", 2}};
  Json inner = convolutions(8, Json::array({pool}));
  inner.push_back(up);
  Json middle = convolutions(6, Json::array({pool}));
  middle.push_back({{"type", "concat_skip"}, {"layers", inner}});
  middle = convolutions(6, middle);
  middle.push_back(up);
  Json outer = convolutions(4, Json::array());
  outer.push_back({{"type", "concat_skip"}, {"layers", middle}});
  outer = convolutions(4, outer);
  outer.push_back({{"type", "conv"}, {"features", 2}, {"kernel", 1}});

  // The parameters of both, in the order of the model.
  Tensors expected;
  const ModelRun named = golden_run("unet", {{"type", "unet"}, {"widths", {4, 6, 8}}, {"norm_groups", 2}},
                                    {3, 11, 14, 3}, 2, expected);
  ModelRun said = named;
  said.model = {{"type", "sequential"}, {"layers", outer}};
  const auto names_of = [&](const Json& model) {
    const auto built = build_model(parse<ModelSection>(Json{{"model", model}}).model, {{11, 14}, 3, 2});
    std::vector<std::string> names;
    for (const ParameterBlock* block : built->parameters()) {
      for (const auto& parameter : block->parameters()) names.push_back(parameter->name());
    }
    return names;
  };
  const std::vector<std::string> names = names_of(named.model), others = names_of(said.model);
  ASSERT_EQ(names.size(), others.size());
  said.parameters.clear();
  for (std::size_t i = 0; i < names.size(); ++i) said.parameters[others[i]] = named.parameters.at(names[i]);
  for (const int domain : {1, 2}) {
    const Tensors result = run_on(said, {domain, 1}, domain).tensors;
    EXPECT_LE(relative_difference(result.at("output"), expected.at("output")), 1e-10);
    for (std::size_t i = 0; i < names.size(); ++i) {
      EXPECT_LE(relative_difference(result.at(others[i]), expected.at(names[i]), 1e-3), 1e-10) << names[i];
    }
  }
}

TEST(UNet, RefusesWhatCannotBe) {
  const auto refusal = [](const Json& model, const Shape& space) -> std::string {
    try {
      build_model(parse<ModelSection>(Json{{"model", model}}).model, {space, 3, 2});
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(refusal({{"type", "unet"}, {"levels", 3}}, {33, 49}).find("base_width"), std::string::npos);
  EXPECT_NE(refusal({{"type", "unet"}, {"widths", {4, 6}}, {"levels", 2}}, {33, 49}).find("widths"),
            std::string::npos);
  EXPECT_NE(refusal({{"type", "unet"}, {"widths", {4, 6}}, {"kernel", 4}}, {33, 49}).find("odd"),
            std::string::npos);
  const std::string deep =
      refusal({{"type", "unet"}, {"base_width", 4}, {"norm_groups", 2}, {"levels", 12}}, {33, 49});
  EXPECT_NE(deep.find("model.levels"), std::string::npos) << deep;
  EXPECT_NE(deep.find("at most 7"), std::string::npos) << deep;
  const std::string odd = refusal({{"type", "unet"},
                                   {"base_width", 4},
                                   {"levels", 2},
                                   {"norm_groups", 2},
                                   {"padding_mode", {"pole_cell", "circular"}}},
                                  {33, 49});
  EXPECT_NE(odd.find("padding_mode"), std::string::npos) << odd;
  EXPECT_NE(odd.find("49 columns here"), std::string::npos) << odd;
}

}  // namespace unet_test
}  // namespace jigsaw
