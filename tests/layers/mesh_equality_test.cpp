// One function on every mesh: losses, gradient norms, every gradient and every updated parameter of whole
// models, in float64, against one rank.
#include <gtest/gtest.h>

#include "layers/training_run.h"

namespace jigsaw {
namespace {

const Json kMixer = {{"type", "weathermixer"},
                     {"patch", {3, 7}},
                     {"embed_dim", 10},
                     {"depth", 2},
                     {"dropout", 0.1},
                     {"positions", true},
                     {"final_norm", true},
                     {"output_map", false},
                     {"channel_hidden_ratio", 2.0}};
const Json kPublishedMixer = {{"type", "weathermixer"}, {"patch", {4, 5}}, {"embed_dim", 9}, {"depth", 1}};

/// Three heads of four channels: no number of ranks but three divides them.
const Json kVit = {{"type", "vit"},
                   {"patch", {3, 7}},
                   {"embed_dim", 12},
                   {"depth", 2},
                   {"heads", 3},
                   {"mlp_ratio", 2.0},
                   {"dropout", 0.1},
                   {"attention_dropout", 0.2},
                   {"positions", "learned"}};

using testing::relative_difference;
using Sizes = TrainingRun::MeshSizes;
const std::vector<Sizes> kMeshes = {{1, {2, 1}, 1}, {1, {1, 2}, 1}, {1, {3, 1}, 1}, {1, {1, 1}, 2},
                                    {1, {2, 1}, 2}, {2, {1, 1}, 1}, {2, {1, 1}, 2}, {1, {2, 2}, 2},
                                    {1, {5, 1}, 1}, {1, {1, 1}, 3}};

std::string name_of(const Sizes& mesh) {
  return concat("data ", mesh.data, " domain ", mesh.domain[0], "x", mesh.domain[1], " tensor ", mesh.tensor);
}

void expect_equal(const TrainingRun::Result& one, const TrainingRun::Result& many, double tolerance) {
  EXPECT_LE(relative_difference(many.losses, one.losses), tolerance);
  EXPECT_LE(relative_difference(many.norms, one.norms), tolerance);
  ASSERT_EQ(one.gradients.size(), many.gradients.size());
  for (const auto& [name, gradient] : one.gradients) {
    // Some gradients vanish but for rounding: a constant over the channels, which LayerNorm takes away again.
    EXPECT_LE(relative_difference(many.gradients.at(name), gradient, 1e-3 * one.norms[0]), tolerance)
        << "gradient of " << name;
  }
  for (const auto& [name, parameter] : one.parameters) {
    EXPECT_LE(relative_difference(many.parameters.at(name), parameter), 1e3 * tolerance)
        << "updated " << name;
  }
}

void compare_meshes(TrainingRun run, const std::vector<Sizes>& meshes, double tolerance) {
  const TrainingRun::Result one = run.run({});
  ASSERT_GT(one.norms[0], 0);
  for (const Sizes& mesh : meshes) {
    SCOPED_TRACE(name_of(mesh));
    ASSERT_GT(mesh.ranks(), 1);
    expect_equal(one, run.run(mesh), tolerance);
  }
}

TEST(MeshEquality, MixerInFloat64) {
  compare_meshes({.model = kMixer}, kMeshes, 1e-11);
}

TEST(MeshEquality, VitInFloat64) {
  std::vector<Sizes> meshes = kMeshes;
  meshes.push_back({1, {3, 2}, 1});
  meshes.push_back({1, {8, 1}, 1});
  meshes.push_back({1, {2, 2}, 2});
  compare_meshes({.model = kVit}, meshes, 1e-11);
}

TEST(MeshEquality, VitOfOneHeadGoesRound) {
  Json model = kVit;
  model["heads"] = 1;
  for (const char* positions : {"sincos", "rotary", "none"}) {
    model["positions"] = positions;
    TrainingRun run{.model = model, .space = {13, 29}};
    run.samples = 1;
    compare_meshes(run, {{1, {2, 1}, 1}, {1, {2, 2}, 1}, {1, {2, 3}, 1}, {1, {2, 1}, 2}}, 1e-11);
  }
}

TEST(MeshEquality, SwinInFloat64) {
  Json model = {{"type", "swin"},     {"patch", {3, 7}},  {"embed_dim", 12},         {"depth", 2},
                {"heads", 3},         {"window", {2, 2}}, {"mlp_ratio", 2.0},        {"dropout", 0.1},
                {"layer_scale", 0.5}, {"drop_path", 0.4}, {"attention_dropout", 0.2}};
  for (const bool circular : {false, true}) {
    model["circular"] = circular;
    TrainingRun run{.model = model, .space = {24, 28}};
    compare_meshes(
        run, {{1, {2, 1}, 1}, {1, {1, 2}, 1}, {1, {3, 1}, 1}, {1, {2, 2}, 2}, {2, {1, 1}, 2}, {1, {4, 2}, 1}},
        1e-11);
  }
}

/// On the data's own grid, and on a coarser one; with and without what may stand in front and behind.
TEST(MeshEquality, SfnoInFloat64) {
  const Json plain = {{"type", "sfno"}, {"embed_dim", 6}, {"depth", 2}, {"latitudes", "pole_cell"}};
  Json full = plain;
  full.update({{"latitudes", "pole_point"},
               {"scale", 2},
               {"positions", true},
               {"time_embedding", true},
               {"dropout", 0.1},
               {"drop_path", 0.4},
               {"layer_scale", 0.5},
               {"activation", "prelu"}});
  Json bare = plain;
  bare.update({{"latitudes", "gauss"}, {"final_norm", false}, {"input_skip", false}, {"degrees", 3}});
  for (const Json& model : {plain, full, bare}) {
    TrainingRun run{.model = model, .space = {9, 14}};
    run.time_channels = {1, 4};
    run.samples = 2;
    compare_meshes(run, kMeshes, 1e-11);
  }
}

TEST(MeshEquality, VitIsASequenceOfItsLayers) {
  const Json layers = {
      {{"type", "patch_embed"}, {"patch", {3, 7}}, {"embed_dim", 12}},
      {{"type", "sincos_positions"}},
      {{"type", "repeat"},
       {"times", 2},
       {"layers",
        {{{"type", "residual"},
          {"layers", {{{"type", "layer_norm"}}, {{"type", "multi_head_attention"}, {"heads", 3}}}}},
         {{"type", "residual"},
          {"layers", {{{"type", "layer_norm"}}, {{"type", "mlp"}, {"hidden_ratio", 2.0}}}}}}}},
      {{"type", "layer_norm"}},
      {{"type", "patch_recover"}, {"patch", {3, 7}}}};
  Json vit = kVit;
  vit["positions"] = "sincos";
  vit["dropout"] = vit["attention_dropout"] = 0.0;
  TrainingRun sequence{.model = {{"type", "sequential"}, {"layers", layers}}};
  const TrainingRun::Result one = sequence.run({});
  // The same parameters under the names of the sequence.
  const auto renamed = [](std::string name) {
    const std::pair<const char*, const char*> names[] = {
        {"encoder", "layers.0"}, {"blocks.", "layers.2."}, {"norm1", "0.0"},       {"attention.", "0.1."},
        {"norm2", "1.0"},        {"mlp.", "1.1."},         {"decoder", "layers.4"}};
    if (name.starts_with("norm.")) return "layers.3" + name.substr(4);
    for (const auto& [from, to] : names) {
      if (const std::size_t at = name.find(from); at != std::string::npos) {
        name.replace(at, std::string(from).size(), to);
      }
    }
    return name;
  };
  TrainingRun named{.model = vit};
  const TrainingRun::Result start = named.run({});
  sequence.steps = named.steps = 2;
  for (const auto& [name, values] : start.parameters) {
    ASSERT_TRUE(one.parameters.contains(renamed(name))) << name;
    named.initial[name] = sequence.initial[renamed(name)] = values;
  }
  EXPECT_EQ(start.parameters.size(), one.parameters.size());
  EXPECT_EQ(named.run({}).losses, sequence.run({}).losses);
}

TEST(MeshEquality, SwinIsASequenceOfItsLayersShiftedWhereThereAreSeveralWindows) {
  // 4 × 6 patches; a window spans the first axis.
  const auto block = [](const Json& shift) {
    const Json attention = {
        {"type", "windowed_attention"}, {"heads", 3}, {"window", {4, 3}}, {"shift", shift}};
    return std::array<Json, 2>{
        Json{{"type", "residual"}, {"layers", {{{"type", "layer_norm"}}, attention}}},
        Json{{"type", "residual"},
             {"layers", {{{"type", "layer_norm"}}, {{"type", "mlp"}, {"hidden_ratio", 2.0}}}}}};
  };
  const auto unshifted = block({0, 0}), shifted = block({0, 1});
  const Json layers = {{{"type", "patch_embed"}, {"patch", {3, 4}}, {"embed_dim", 12}},
                       unshifted[0],
                       unshifted[1],
                       shifted[0],
                       shifted[1],
                       {{"type", "layer_norm"}},
                       {{"type", "patch_recover"}, {"patch", {3, 4}}}};
  TrainingRun sequence{.model = {{"type", "sequential"}, {"layers", layers}}, .space = {12, 24}};
  const TrainingRun::Result one = sequence.run({});
  const auto renamed = [](const std::string& name) {
    const std::pair<const char*, const char*> names[] = {{"encoder", "layers.0"},
                                                         {"blocks.0.norm1", "layers.1.0"},
                                                         {"blocks.0.attention", "layers.1.1"},
                                                         {"blocks.0.norm2", "layers.2.0"},
                                                         {"blocks.0.mlp", "layers.2.1"},
                                                         {"blocks.1.norm1", "layers.3.0"},
                                                         {"blocks.1.attention", "layers.3.1"},
                                                         {"blocks.1.norm2", "layers.4.0"},
                                                         {"blocks.1.mlp", "layers.4.1"},
                                                         {"norm", "layers.5"},
                                                         {"decoder", "layers.6"}};
    for (const auto& [from, to] : names) {
      if (name.starts_with(from)) return to + name.substr(std::string(from).size());
    }
    return name;
  };
  TrainingRun swin{.model = {{"type", "swin"},
                             {"patch", {3, 4}},
                             {"embed_dim", 12},
                             {"depth", 2},
                             {"heads", 3},
                             {"window", {4, 3}},
                             {"mlp_ratio", 2.0}},
                   .space = {12, 24}};
  sequence.steps = swin.steps = 1;
  const TrainingRun::Result own = swin.run({});
  for (const auto& [name, values] : own.gradients) {
    swin.initial[name] = std::vector<double>(values.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      swin.initial[name][i] = 0.3 * std::sin(static_cast<double>(i + name.size()));
    sequence.initial[renamed(name)] = swin.initial[name];
  }
  ASSERT_EQ(one.gradients.size(), sequence.initial.size());
  const TrainingRun::Result expected = sequence.run({}), found = swin.run({});
  EXPECT_LE(relative_difference(found.outputs.at("output"), expected.outputs.at("output")), 1e-12);
  for (const auto& [name, gradient] : found.gradients)
    EXPECT_LE(relative_difference(gradient, expected.gradients.at(renamed(name))), 1e-11) << name;
}

/// With all parameters zero but one bias behind a half of a block, which the decoder sums up to
/// 1 - probability, a sample that skips the half gives 0, and one that does not 1 (Huang et al. 2016).
TEST(DropPath, GrowsLinearlyToItsProbability) {
  for (const char* type : {"vit", "swin"}) {
    TrainingRun run{.model = {{"type", type},
                              {"patch", {3, 7}},
                              {"embed_dim", 12},
                              {"depth", 3},
                              {"heads", 3},
                              {"drop_path", 0.5},
                              {"final_norm", false}},
                    .space = {6, 14},
                    .samples = 24,
                    .steps = 1};
    run.model[type == std::string("vit") ? "positions" : "window"] =
        type == std::string("vit") ? Json("none") : Json({2, 2});
    const testing::Tensors names = run.run({}).gradients;
    for (int block = 0; block < 3; ++block) {
      for (const char* half : {".attention.out_proj.bias", ".mlp.fc2.bias"}) {
        const std::string bias = concat("blocks.", block, half);
        SCOPED_TRACE(concat(type, " ", bias));
        ASSERT_TRUE(names.contains(bias));
        for (const auto& [name, values] : names) run.initial[name].assign(values.size(), 0.0);
        const double probability = 0.25 * block;
        run.initial["decoder.weight"].assign(names.at("decoder.weight").size(), 1.0);
        run.initial[bias].assign(12, (1 - probability) / 12);
        std::size_t kept = 0;
        const std::vector<double> outputs = run.run({}).outputs.at("output");
        for (const double value : outputs) {
          EXPECT_NEAR(value, value > 0.1 ? 1 : 0, 1e-12);
          kept += value > 0.1 ? 1 : 0;
        }
        EXPECT_GT(kept, 0U);
        EXPECT_EQ(kept == outputs.size(), block == 0);
      }
    }
  }
}

/// Patches that overlap, and the input's time.
TEST(MeshEquality, EmbeddingsInFloat64) {
  const std::vector<Sizes> meshes = {{1, {2, 1}, 1}, {1, {1, 3}, 1}, {1, {1, 1}, 2}, {2, {2, 1}, 1},
                                     {1, {3, 1}, 2}, {1, {2, 2}, 2}, {1, {8, 1}, 1}};
  Json vit = kVit;
  Json swin = {{"type", "swin"}, {"patch", {3, 7}}, {"embed_dim", 6},
               {"depth", 1},     {"heads", 2},      {"window", {1, 1}}};
  Json mixer = kPublishedMixer;
  for (Json* model : {&vit, &swin, &mixer}) {
    (*model)["time_embedding"] = true;
    (*model)["patch_kernel"] = {6, 9};
  }
  vit["circular"] = true;
  for (const Json& model : {vit, swin, mixer}) {
    TrainingRun run{.model = model};
    run.time_channels = {1, 4};
    run.samples = 3;
    compare_meshes(run, meshes, 1e-11);
  }
}

TEST(MeshEquality, PublishedMixerOnAGridThatPatchesDoNotDivide) {
  TrainingRun run{.model = kPublishedMixer, .space = {13, 17}, .variable_weights = {{"v1", 3.0}}};
  run.samples = 3;
  compare_meshes(run, kMeshes, 1e-11);
}

/// Every normalisation and activation, and drop path, in one network.
TEST(MeshEquality, NormsAndActivations) {
  const Json inner = {{{"type", "rms_norm"}},
                      {{"type", "linear"}, {"features", 6}},
                      {{"type", "tanh"}},
                      {{"type", "drop_path"}, {"probability", 0.4}}};
  const Json layers = {{{"type", "linear"}, {"features", 6}},
                       {{"type", "batch_norm"}},
                       {{"type", "relu"}},
                       {{"type", "residual"}, {"layers", inner}},
                       {{"type", "group_norm"}, {"groups", 2}},
                       {{"type", "silu"}},
                       {{"type", "linear"}, {"features", 4}},
                       {{"type", "instance_norm"}},
                       {{"type", "sigmoid"}},
                       {{"type", "linear"}, {"features", 2}}};
  TrainingRun run{.model = {{"type", "sequential"}, {"layers", layers}}, .space = {7, 9}};
  std::vector<Sizes> meshes = kMeshes;
  meshes.push_back({1, {3, 2}, 1});
  for (const std::int64_t samples : {1, 3}) {
    run.samples = samples;
    compare_meshes(run, meshes, 1e-11);
  }
}

/// Activations chosen by the key, with and without a parameter.
TEST(MeshEquality, ConfiguredActivations) {
  const Json layers = {
      {{"type", "linear"}, {"features", 6}},
      {{"type", "layer_norm"}, {"activation", "silu"}},
      {{"type", "prelu"}},
      {{"type", "channel_mixing"}, {"activation", "prelu"}, {"dropout", 0.2}},
      {{"type", "group_norm"}, {"groups", 2}, {"activation", "prelu"}},
      {{"type", "group_norm"}, {"groups", 3}, {"activation", "silu"}},
      {{"type", "batch_norm"}, {"activation", "mish"}},
      {{"type", "squeeze_excitation"}, {"hidden_ratio", 0.5}},
      {{"type", "token_mixing"}, {"activation", "prelu"}},
      {{"type", "conv"}, {"features", 6}, {"kernel", 3}, {"padding", 1}, {"activation", "gelu"}},
      {{"type", "conv"}, {"features", 4}, {"kernel", 1}, {"bias", false}, {"activation", "prelu"}},
      {{"type", "channel_mixing"}, {"activation", "leaky_relu"}},
      {{"type", "linear"}, {"features", 2}}};
  TrainingRun run{.model = {{"type", "sequential"}, {"layers", layers}}, .space = {7, 9}};
  run.samples = 2;
  compare_meshes(run, kMeshes, 1e-11);
}

TEST(MeshEquality, OneOutputChannelOnTwoTensorRanks) {
  TrainingRun run{.model = kMixer};
  run.outputs = 1;
  compare_meshes(run, {{1, {1, 1}, 2}, {1, {2, 1}, 2}}, 1e-11);
}

TEST(MeshEquality, ShiftedWindowsRecomputed) {
  TrainingRun run{.model = {{"type", "swin"},
                            {"patch", {3, 7}},
                            {"embed_dim", 6},
                            {"depth", 2},
                            {"heads", 2},
                            {"window", {2, 2}}},
                  .space = {24, 28}};
  const TrainingRun::Result kept = run.run({1, {2, 1}, 1});
  run.recompute = true;
  EXPECT_EQ(run.run({1, {2, 1}, 1}).losses, kept.losses);
}

TEST(MeshEquality, ZeroRedundancyOverData) {
  for (const Zero zero : {Zero::kOptimizer, Zero::kParameters}) {
    TrainingRun run{.model = kMixer};
    const TrainingRun::Result one = run.run({});
    run.zero = zero;
    expect_equal(one, run.run({2, {1, 1}, 1}), 1e-11);
    expect_equal(one, run.run({2, {1, 1}, 2}), 1e-11);
  }
}

/// On a slow machine with a slow network every gather and reduce-scatter of a contraction travels in parts.
TEST(MeshEquality, StreamedTransfersInFloat64) {
  TrainingRun run{.model = kMixer};
  run.cost = {.flops_per_second = 1e6, .network = {1e6, 0}};
  const TrainingRun::Result one = run.run({});
  for (const Sizes& mesh :
       {Sizes{1, {2, 1}, 1}, {1, {1, 1}, 2}, {1, {3, 1}, 1}, {1, {2, 1}, 2}, {1, {2, 2}, 2}}) {
    SCOPED_TRACE(name_of(mesh));
    const TrainingRun::Result many = run.run(mesh);
    if (mesh.tensor > 1) {
      EXPECT_GT(many.exchanges, 0);
    }
    expect_equal(one, many, 1e-11);
  }
}

TEST(MeshEquality, StreamedTransfersInFloat32) {
  TrainingRun run{.model = kMixer, .dtype = DType::kFloat32};
  run.cost = {.flops_per_second = 1e6, .network = {1e6, 0}};
  const TrainingRun::Result one = run.run({});
  for (const Sizes& mesh : {Sizes{1, {1, 1}, 2}, {1, {2, 2}, 2}}) {
    SCOPED_TRACE(name_of(mesh));
    const TrainingRun::Result many = run.run(mesh);
    EXPECT_GT(many.exchanges, 0);
    expect_equal(one, many, 1e-5);
  }
}

/// Large parameters travel one by one, and their gradients before the block's backward is over.
TEST(MeshEquality, BlocksOfSeveralBuffersInFloat64) {
  Json wide = kMixer;
  wide["embed_dim"] = 520;
  wide["channel_hidden_ratio"] = 1.0;
  TrainingRun run{.model = wide, .space = {9, 14}, .samples = 2};
  run.zero = Zero::kParameters;
  const TrainingRun::Result one = run.run({});
  for (const bool recompute : {false, true}) {
    run.recompute = recompute;
    for (const Sizes& mesh : {Sizes{2, {1, 1}, 1}, {2, {2, 1}, 1}, {2, {1, 1}, 2}}) {
      SCOPED_TRACE(concat(name_of(mesh), recompute ? ", recomputed" : ""));
      const TrainingRun::Result many = run.run(mesh);
      if (mesh.tensor == 1) {
        EXPECT_GT(many.buffers, 1);
      }
      expect_equal(one, many, 1e-11);
    }
  }
}

/// Many hidden numbers are cut in eights, so that ranks do not have quite the same of them.
TEST(MeshEquality, HiddenNumbersAreCutInEights) {
  struct Case {
    std::string type;
    double ratio;
    std::int64_t others;  ///< numbers that each hidden one is made of
    Sizes mesh;
  };
  for (const Case& each :
       {Case{"channel_mixing", 820.4, 5, {1, {1, 1}, 2}}, Case{"channel_mixing", 820.4, 5, {1, {1, 1}, 3}},
        Case{"token_mixing", 683.7, 6, {1, {2, 1}, 1}}}) {
    SCOPED_TRACE(concat(each.type, " ", name_of(each.mesh)));
    const TrainingRun run{
        .model = {{"type", "sequential"}, {"layers", {{{"type", each.type}, {"hidden_ratio", each.ratio}}}}},
        .space = {2, 3},
        .samples = 2,
        .outputs = 5,
        .steps = 2};
    const TrainingRun::Result many = run.run(each.mesh);
    expect_equal(run.run({}), many, 1e-11);
    std::int64_t all = 0;
    const std::vector<std::int64_t> pieces = many.pieces.at("layers.0.fc1.weight");
    for (const std::int64_t elements : pieces) {
      const std::int64_t hidden = elements / each.others;
      all += hidden;
      EXPECT_EQ(all == 4102 ? 0 : hidden % 8, 0) << hidden;
    }
    EXPECT_EQ(all, 4102);
  }
}

TEST(MeshEquality, RecomputedBlocksGiveTheSameBits) {
  TrainingRun run{.model = kMixer};
  const TrainingRun::Result kept = run.run({1, {2, 1}, 1});
  run.recompute = true;
  const TrainingRun::Result again = run.run({1, {2, 1}, 1});
  EXPECT_EQ(kept.losses, again.losses);
  EXPECT_EQ(kept.gradients, again.gradients);
  EXPECT_LT(again.peak_activation_bytes[0], kept.peak_activation_bytes[0]);
}

TEST(MeshEquality, NothingIsHeldTwice) {
  const TrainingRun run{.model = kMixer};
  const std::int64_t whole = run.run({}).parameter_bytes[0];
  for (const Sizes& mesh : {Sizes{1, {2, 1}, 1}, {1, {1, 1}, 2}, {1, {2, 2}, 2}}) {
    std::int64_t sum = 0;
    for (const std::int64_t bytes : run.run(mesh).parameter_bytes) {
      sum += bytes;
      EXPECT_LE(static_cast<double>(bytes), 1.2 * static_cast<double>(whole) / mesh.ranks()) << name_of(mesh);
    }
    // Zeros make shares equal (parameter_test counts them).
    EXPECT_GE(sum, whole) << name_of(mesh);
    EXPECT_LE(static_cast<double>(sum), 1.005 * static_cast<double>(whole)) << name_of(mesh);
  }
}

}  // namespace
}  // namespace jigsaw
