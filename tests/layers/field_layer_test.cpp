// Layers on neighbourhoods in float64 against PyTorch's numbers, built from configurations, on one rank and
// on meshes of 2 to 8; what their keys refuse.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "config/config.h"
#include "layers/layer_golden.h"
#include "layers/registry.h"
#include "support/golden_file.h"

namespace jigsaw {
namespace {

struct LayerSection {
  Tagged layer;
};
void declare(Keys<LayerSection>& keys) {
  keys.tagged("layer", &LayerSection::layer, layer_types).required().doc("The layer.");
}

std::function<LayerPtr(const LayerSite&)> layer_of(const Json& layer) {
  return [layer](const LayerSite& site) {
    return build_layer(parse<LayerSection>(Json{{"layer", layer}}).layer, site, {});
  };
}

struct Case {
  std::string name;
  Json layer;
  Shape field = {3, 5, 6, 4};
};

Json conv(const Json& more = Json::object()) {
  Json layer = {{"type", "conv"}, {"features", 5}, {"kernel", 3}, {"padding", 1}};
  layer.update(more);
  return layer;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"conv", conv()},
      {"conv_1d",
       {{"type", "conv"}, {"features", 4}, {"kernel", {5}}, {"padding", 2}, {"stride", 2}},
       {2, 11, 3}},
      {"conv_3d", conv({{"features", 3}}), {1, 5, 4, 7, 2}},
      {"conv_strided", conv({{"stride", {2, 2}}})},
      {"conv_dilated", conv({{"features", 3}, {"padding", 2}, {"dilation", 2}})},
      {"conv_groups", conv({{"features", 6}, {"groups", 2}})},
      {"conv_depthwise", conv({{"features", 4}, {"groups", 4}})},
      {"conv_reflect", conv({{"features", 3}, {"kernel", 5}, {"padding", 2}, {"padding_mode", "reflect"}})},
      {"conv_replicate",
       conv({{"features", 3}, {"kernel", 5}, {"padding", 2}, {"padding_mode", "replicate"}})},
      {"conv_circular", conv({{"features", 3}, {"kernel", 5}, {"padding", 2}, {"padding_mode", "circular"}})},
      {"conv_pole_cell", conv({{"features", 3}, {"padding_mode", {"pole_cell", "circular"}}})},
      {"conv_pole_point", conv({{"features", 3}, {"padding_mode", {"pole_point", "circular"}}})},
      {"conv_transpose", {{"type", "conv_transpose"}, {"features", 3}, {"kernel", 2}, {"stride", 2}}},
      {"conv_transpose_cropped",
       {{"type", "conv_transpose"}, {"features", 3}, {"kernel", 2}, {"stride", 2}, {"size", {9, 11}}}},
      {"conv_transpose_overlapping",
       {{"type", "conv_transpose"},
        {"features", 6},
        {"kernel", 3},
        {"stride", 2},
        {"padding", 1},
        {"output_padding", 1},
        {"groups", 2}}},
      {"conv_transpose_3d",
       {{"type", "conv_transpose"}, {"features", 2}, {"kernel", 3}, {"stride", 2}, {"padding", 1}},
       {1, 3, 4, 2, 3}},
      {"max_pool", {{"type", "max_pool"}, {"kernel", 2}, {"ceil_mode", true}}},
      {"max_pool_overlapping", {{"type", "max_pool"}, {"kernel", 3}, {"stride", 2}, {"padding", 1}}},
      {"max_pool_3d", {{"type", "max_pool"}, {"kernel", 2}}, {1, 5, 4, 7, 2}},
      {"avg_pool", {{"type", "avg_pool"}, {"kernel", 2}, {"ceil_mode", true}}},
      {"avg_pool_padded", {{"type", "avg_pool"}, {"kernel", 3}, {"stride", 2}, {"padding", 1}}},
      {"avg_pool_uncounted",
       {{"type", "avg_pool"}, {"kernel", 3}, {"stride", 2}, {"padding", 1}, {"count_include_pad", false}}},
      {"global_avg_pool", {{"type", "global_avg_pool"}}},
      {"upsample_nearest", {{"type", "upsample"}, {"scale", 2}}},
      {"upsample_linear", {{"type", "upsample"}, {"scale", 2}, {"mode", "linear"}}},
      {"upsample_size", {{"type", "upsample"}, {"size", {7, 4}}, {"mode", "linear"}}},
      {"upsample_3d", {{"type", "upsample"}, {"scale", 2}, {"mode", "linear"}}, {1, 3, 4, 2, 3}},
      {"pad", {{"type", "pad"}, {"low", {1, 0}}, {"high", {2, 3}}}},
      {"pad_reflect", {{"type", "pad"}, {"low", {2, 1}}, {"high", {1, 4}}, {"padding_mode", "reflect"}}},
      {"concat_skip",
       {{"type", "concat_skip"},
        {"layers",
         {{{"type", "max_pool"}, {"kernel", 2}, {"ceil_mode", true}},
          conv({{"features", 3}}),
          {{"type", "upsample"}, {"scale", 2}}}}}},
  };
  return all;
}

class FieldLayer : public ::testing::TestWithParam<Case> {};

testing::LayerGolden golden_of(const Case& what) {
  return testing::read_layer("field_layers.h5", what.name, what.field, layer_of(what.layer));
}

TEST_P(FieldLayer, IsTorchs) {
  const Case& what = GetParam();
  const testing::LayerGolden golden = golden_of(what);
  const int space = what.field.rank() - 2;
  const auto check = [&](std::vector<int> domain, int tensor) {
    domain.resize(static_cast<std::size_t>(space), 1);
    check_layer_on(golden, domain, tensor);
  };
  for (const int tensor : {1, 2, 3}) check({1}, tensor);
  for (const int domain : {2, 3, 4, 6}) check({domain}, 1);
  check({2}, 2);
  check({3}, 2);
  check({8}, 1);
  if (space == 1) return;
  check({1, 2}, 1);
  check({1, 3}, 2);
  check({2, 2}, 1);
  check({2, 2}, 2);
  check({2, 3}, 1);
  if (space == 3) check({2, 1, 2}, 2);
}

/// Three samples, of which the golden's first is every one: what they give is the golden's, and upstream
/// gradients that are multiples of its own make multiples of its gradients.
TEST_P(FieldLayer, OfOneSampleAndOfThree) {
  const testing::LayerGolden golden = golden_of(GetParam());
  const int space = golden.field.rank() - 2;
  const auto first_of = [&](std::vector<double> values) {
    values.resize(values.size() / static_cast<std::size_t>(golden.field[0]));
    return values;
  };
  testing::LayerGolden one = golden;
  one.field[0] = 1;
  one.input = first_of(golden.input);
  one.output_gradient = first_of(golden.output_gradient);
  const std::vector<int> alone(static_cast<std::size_t>(space), 1);
  one.expected = testing::run_layer_on(one, alone, 1);
  for (const std::string name : {"output", "input"}) {
    EXPECT_LE(testing::relative_difference(one.expected.at(name), first_of(golden.expected.at(name))), 1e-10)
        << name;
  }

  testing::LayerGolden three = one;
  three.field[0] = 3;
  for (testing::Tensors::value_type& each : three.expected) {
    if (each.first != "output" && each.first != "input") {
      for (double& value : each.second) value *= 1 - 0.5 + 2;
    }
  }
  const auto append = [](std::vector<double>& to, const std::vector<double>& from, double factor) {
    for (const double value : from) to.push_back(factor * value);
  };
  for (const double factor : {-0.5, 2.0}) {
    append(three.input, one.input, 1);
    append(three.output_gradient, one.output_gradient, factor);
    append(three.expected["output"], one.expected.at("output"), 1);
    append(three.expected["input"], one.expected.at("input"), factor);
  }
  for (const testing::LayerGolden* batch : {&one, &three}) {
    const auto check = [&](std::vector<int> domain, int tensor) {
      domain.resize(static_cast<std::size_t>(space), 1);
      check_layer_on(*batch, domain, tensor);
    };
    for (const int domain : {2, 3, 4}) check({domain}, 1);
    check({3}, 2);
    if (space > 1) check({2, 2}, 2);
  }
}

INSTANTIATE_TEST_SUITE_P(, FieldLayer, ::testing::ValuesIn(cases()),
                         [](const auto& of) { return of.param.name; });

/// The key "activation" of convolutions bends PyTorch's numbers, and only its slope is a parameter more.
TEST(FieldLayers, ConvolutionsWithAnActivation) {
  for (const char* name : {"conv", "conv_transpose_overlapping"}) {
    const auto what =
        std::find_if(cases().begin(), cases().end(), [&](const Case& c) { return c.name == name; });
    const std::vector<double> linear = golden_of(*what).expected.at("output");
    Case bent = *what;
    bent.layer["activation"] = "silu";
    std::vector<double> expected;
    for (const double x : linear) expected.push_back(x / (1 + std::exp(-x)));
    EXPECT_LE(testing::relative_difference(run_layer_on(golden_of(bent), {2, 1}, 1).at("output"), expected),
              1e-12);
  }
}

TEST(FieldLayers, EveryLayerOfTheFileIsTested) {
  std::vector<std::string> tested;
  for (const Case& what : cases()) tested.push_back(what.name);
  std::sort(tested.begin(), tested.end());
  EXPECT_EQ(testing::GoldenFile("field_layers.h5").names("/"), tested);
}

// ---- what is refused

std::string refusal(const Json& layer, const FieldShape& field) {
  ParameterBlock block("layer");
  try {
    layer_of(layer)({block, "", field, "model.layers[0]"});
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

void expect_refused(const Json& layer, const FieldShape& field, const std::vector<std::string>& parts) {
  const std::string sentence = refusal(layer, field);
  for (const std::string& part : parts) {
    EXPECT_NE(sentence.find(part), std::string::npos) << "\"" << sentence << "\" lacks \"" << part << "\"";
  }
}

TEST(FieldLayers, ImpossibleKeysAreNamedWithAValueThatWouldWork) {
  const FieldShape field{{33, 49}, 6};
  expect_refused(conv({{"padding_mode", {"pole_cell", "circular"}}}), field,
                 {"model.layers[0].padding_mode", "49 columns here", "odd"});
  expect_refused(conv({{"padding_mode", "pole_cell"}}), {{32, 48}, 6},
                 {"padding_mode", "width", "replicate"});
  expect_refused(conv({{"kernel", {40, 3}}}), field, {"model.layers[0].kernel", "40", "35"});
  expect_refused(conv({{"groups", 4}}), field, {"model.layers[0].groups", "4", "use 1"});
  expect_refused(conv({{"groups", 4}, {"features", 12}}), field, {"groups", "use 3"});
  expect_refused(conv({{"kernel", {3, 3, 3}}}), field, {"model.layers[0].kernel", "give it 1 or 2"});
  expect_refused(conv({{"kernel", 7}, {"padding", 3}, {"padding_mode", "reflect"}}), {{3, 8}, 6},
                 {"model.layers[0].padding_mode", "mirrors the 3 points", "there are 3 and must be 4"});
  expect_refused({{"type", "max_pool"}, {"kernel", 2}, {"padding", 2}}, field, {"padding", "at most", "1"});
  expect_refused(
      {{"type", "conv_transpose"}, {"features", 2}, {"kernel", 2}, {"stride", 2}, {"output_padding", 2}},
      field, {"output_padding", "at most 1"});
  expect_refused({{"type", "concat_skip"}, {"layers", {{{"type", "max_pool"}, {"kernel", 2}}}}}, field,
                 {"model.layers[0].layers", "upsample"});
}

TEST(FieldLayers, SizesThatCannotBeCountedAreRefused) {
  const FieldShape field{{33, 49}, 6};
  constexpr std::int64_t kLarge = std::int64_t{1} << 20;
  const char* beyond = "more than any machine holds";
  expect_refused({{"type", "upsample"}, {"scale", kLarge}}, field, {"model.layers[0] makes", beyond});
  expect_refused({{"type", "upsample"}, {"scale", kLarge}}, {{kLarge << 20, 1}, 1},
                 {"model.layers[0].scale must be at most 4 here, and is 1048576"});
  expect_refused({{"type", "conv_transpose"}, {"features", 1}, {"kernel", kLarge}, {"stride", kLarge}}, field,
                 {"model.layers[0] makes a parameter of [6, 1, 1048576, 1048576]", beyond});
  expect_refused(
      {{"type", "conv_transpose"}, {"features", 1}, {"kernel", 1}, {"stride", kLarge}, {"dilation", kLarge}},
      field, {"model.layers[0] makes", beyond});
  expect_refused(
      conv({{"features", kLarge}, {"kernel", kLarge}, {"padding", kLarge / 2}}), {{33, 49, 33}, kLarge},
      {"model.layers[0] makes a parameter of [1048576, 1048576, 1048576, 1048576, 1048576]", beyond});
}

// ---- components of vectors

TEST(FieldLayers, ComponentsOfVectorsStayThemselvesUntilTheyAreMixed) {
  const PoleCrossing wind{{1, -1}, {0, 0.5}};
  const auto after = [&](const Json& layer) {
    ParameterBlock block("layer");
    return layer_of(layer)({block, "", {{8, 8}, 2, wind}, "model.layers[0]"})->output().crossing;
  };
  const Json average = {{"type", "avg_pool"}, {"kernel", 2}};
  EXPECT_EQ(after(average), wind);
  EXPECT_EQ(after({{"type", "upsample"}, {"scale", 2}, {"mode", "linear"}}), wind);
  EXPECT_EQ(after({{"type", "pad"}, {"low", 1}, {"high", 1}}), wind);
  EXPECT_EQ(after({{"type", "dropout"}}), wind);
  EXPECT_EQ(after(conv()), PoleCrossing{});
  EXPECT_EQ(after({{"type", "max_pool"}, {"kernel", 2}}), PoleCrossing{});
  EXPECT_EQ(after({{"type", "gelu"}}), PoleCrossing{});
  EXPECT_EQ(after({{"type", "layer_norm"}}), PoleCrossing{});
  EXPECT_EQ(after({{"type", "residual"}, {"layers", {conv({{"features", 2}})}}}), PoleCrossing{});
  const Json doubled = {{"type", "upsample"}, {"scale", 2}};
  EXPECT_EQ(after({{"type", "concat_skip"}, {"layers", {average, doubled}}}),
            (PoleCrossing{{1, -1, 1, -1}, {0, 0.5, 0, 0.5}}));
  EXPECT_EQ(after({{"type", "concat_skip"}, {"layers", {conv({{"features", 1}})}}}),
            (PoleCrossing{{1, -1, 1}, {0, 0.5, 0}}));
}

}  // namespace
}  // namespace jigsaw
