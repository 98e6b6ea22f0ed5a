// Layers and whole training runs in float64 against PyTorch's numbers, on one rank and on meshes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "base/error.h"
#include "layers/batch_norm.h"
#include "layers/group_norm.h"
#include "layers/layer_golden.h"
#include "layers/layer_norm.h"
#include "layers/linear.h"
#include "layers/mixing.h"
#include "layers/patches.h"
#include "layers/pointwise_layers.h"
#include "layers/rms_norm.h"
#include "layers/training_run.h"
#include "support/golden_file.h"
#include "support/test_ranks.h"

namespace jigsaw {
namespace {

using testing::check_layer;
using testing::GoldenFile;
using testing::layer;
using testing::read_layer;
using testing::relative_difference;
using testing::Tensors;
using Sizes = TrainingRun::MeshSizes;

// ---- single layers

std::function<LayerPtr(const LayerSite&)> activation(ActivationKind which) {
  return [which](const LayerSite& site) { return std::make_unique<ActivationLayer>(site, which); };
}

TEST(GoldenLayer, Linear) {
  check_layer(read_layer("layers.h5", "linear", {3, 5, 7}, layer<Linear>(LinearOptions{4})));
}

TEST(GoldenLayer, LayerNorm) {
  check_layer(read_layer("layers.h5", "layer_norm", {3, 5, 7}, layer<LayerNorm>(LayerNormOptions{})));
}

TEST(GoldenLayer, Gelu) {
  check_layer(read_layer("layers.h5", "gelu", {2, 19, 1}, activation(ActivationKind::kGelu)));
}

TEST(GoldenLayer, Activations) {
  const std::map<std::string, ActivationKind> activations = {{"leaky_relu", ActivationKind::kLeakyRelu},
                                                             {"mish", ActivationKind::kMish},
                                                             {"relu", ActivationKind::kRelu},
                                                             {"sigmoid", ActivationKind::kSigmoid},
                                                             {"silu", ActivationKind::kSilu},
                                                             {"tanh", ActivationKind::kTanh}};
  for (const auto& [name, which] : activations) {
    check_layer(read_layer("activations.h5", name, {2, 19, 1}, activation(which)));
  }
  EXPECT_EQ(GoldenFile("activations.h5").names("/").size(), activations.size());
}

TEST(GoldenLayer, Norms) {
  const auto check = [](const std::string& name, const Shape& field, auto build, bool training = true) {
    testing::LayerGolden golden = read_layer("norms.h5", name, field, build);
    golden.training = training;
    check_layer(golden);
  };
  check("rms_norm", {3, 5, 7}, layer<RmsNorm>(RmsNormOptions{}));
  check("group_norm", {2, 7, 5, 12}, layer<GroupNorm>(GroupNormOptions{3}));
  check("group_norm_3d", {2, 3, 4, 5, 6}, layer<GroupNorm>(GroupNormOptions{2}));
  check("instance_norm", {2, 7, 5, 12}, layer<InstanceNorm>(InstanceNormOptions{}));
  check("batch_norm", {3, 5, 4, 6}, layer<BatchNorm>(BatchNormOptions{}));
  check("batch_norm_evaluation", {3, 5, 4, 6}, layer<BatchNorm>(BatchNormOptions{}), false);
  EXPECT_EQ(GoldenFile("norms.h5").names("/").size(), 6U);
}

TEST(GoldenLayer, GroupsThatDoNotDivideAreAnError) {
  ParameterBlock block("layer");
  try {
    GroupNorm({block, "", {{4, 4}, 12}, "model.layers[2]"}, {5});
    FAIL() << "5 groups of 12 channels";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "model.layers[2].groups is 5, which does not divide the 12 channels; use 4");
  }
}

TEST(GoldenLayer, Mlp) {
  check_layer(read_layer("layers.h5", "mlp", {1, 3, 7}, layer<ChannelMixing>(ChannelMixingOptions{9.0 / 7})));
}

TEST(GoldenLayer, TokenMixing) {
  check_layer(read_layer("layers.h5", "token_mixing", {2, 3, 5, 4},
                         layer<TokenMixing>(TokenMixingOptions{7.0 / 15})));
}

TEST(GoldenLayer, ChannelMixing) {
  check_layer(read_layer("layers.h5", "channel_mixing", {2, 3, 5, 4},
                         layer<ChannelMixing>(ChannelMixingOptions{9.0 / 4})));
}

TEST(GoldenLayer, PatchEmbed) {
  check_layer(
      read_layer("layers.h5", "patch_embed", {2, 7, 10, 3}, layer<PatchEmbed>(PatchEmbedOptions{{3, 4}, 5})));
}

TEST(GoldenLayer, PatchRecover) {
  check_layer(read_layer("layers.h5", "patch_recover", {2, 3, 3, 5},
                         layer<PatchRecover>(PatchRecoverOptions{{3, 4}, 3, {7, 10}})));
}

TEST(GoldenLayer, EveryLayerOfTheFileIsTested) {
  const std::vector<std::string> expected = {"channel_mixing", "gelu",          "layer_norm",
                                             "linear",         "mlp",           "mse",
                                             "patch_embed",    "patch_recover", "token_mixing"};
  EXPECT_EQ(GoldenFile("layers.h5").names("/"), expected);
}

// ---- the loss

TEST(GoldenLoss, MeanSquaredErrorOfValidPoints) {
  const GoldenFile file("layers.h5");
  const GoldenFile::Tensor prediction = file.read("mse/prediction");
  std::vector<double> target = file.values("mse/target");
  const std::vector<double> valid = file.values("mse/valid");
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (valid[i] == 0) target[i] = NAN;
  }
  const std::vector<double> weights = file.values("mse/variable_weights");
  FieldLossOptions options;
  for (std::size_t c = 0; c < weights.size(); ++c) options.variable_weights[concat("v", c)] = weights[c];
  const FieldLoss loss(options, file.values("mse/latitude_weights"), {"v0", "v1", "v2"});

  // Read before ranks start: HDF5 is not for several threads.
  const double value = file.values("mse/loss")[0];
  const std::vector<double> expected = file.values("mse/prediction_gradient");
  for (const Sizes& sizes : {Sizes{}, {2, {1, 1}, 1}, {1, {3, 1}, 1}, {1, {1, 2}, 2}, {1, {1, 1}, 2}}) {
    Tensors gradient;
    std::mutex mutex;
    testing::run_test_ranks(sizes.ranks(), [&](Communicator& world) {
      Mesh mesh(world, sizes.data, sizes.domain, sizes.tensor);
      const Rank rank{world.context(), mesh};
      const Layout layout = mesh.field_layout(prediction.shape);
      const Array x = testing::cut_piece(rank, layout, DType::kFloat64, prediction.values);
      const Array y = testing::cut_piece(rank, layout, DType::kFloat64, target);
      const FieldSums sums = loss.sums(rank, x, y, layout);
      const WeightedMean global = loss.global_mean(rank, sums).read(rank.context);
      Tensors mine{{"prediction", std::vector<double>(target.size(), NAN)}};
      testing::paste_piece(rank, layout, loss.gradient(rank, sums, 1.0 / global.weight, x, y, layout),
                           mine.at("prediction"));
      const std::lock_guard lock(mutex);
      EXPECT_NEAR(global.value() / value, 1, 1e-12);
      testing::merge(gradient, mine);
    });
    EXPECT_LE(relative_difference(gradient.at("prediction"), expected), 1e-12);
  }
}

// ---- whole networks

double number(const GoldenFile& file, const char* name) {
  return file.number("/", name);
}
std::vector<std::int64_t> integers(const GoldenFile& file, const char* name) {
  const std::vector<double> values = file.attribute("/", name);
  return {values.begin(), values.end()};
}

Json mixer(const GoldenFile& file) {
  return {{"type", "weathermixer"},
          {"patch", integers(file, "patch")},
          {"embed_dim", integers(file, "embed_dim")[0]},
          {"depth", integers(file, "depth")[0]},
          {"token_hidden_ratio", number(file, "token_hidden_ratio")},
          {"channel_hidden_ratio", number(file, "channel_hidden_ratio")},
          {"positions", number(file, "positions") != 0},
          {"final_norm", number(file, "final_norm") != 0},
          {"output_map", number(file, "output_map") != 0}};
}

Json vit(const GoldenFile& file) {
  return {{"type", "vit"},
          {"patch", integers(file, "patch")},
          {"embed_dim", integers(file, "embed_dim")[0]},
          {"depth", integers(file, "depth")[0]},
          {"heads", integers(file, "heads")[0]},
          {"mlp_ratio", number(file, "mlp_ratio")}};
}

Json sfno(const GoldenFile& file) {
  return {{"type", "sfno"},
          {"embed_dim", integers(file, "embed_dim")[0]},
          {"depth", integers(file, "depth")[0]},
          {"scale", integers(file, "scale")[0]},
          {"mlp_ratio", number(file, "mlp_ratio")},
          {"positions", true}};
}

TrainingRun golden_run(const GoldenFile& file, const Json& model) {
  TrainingRun run{.model = model, .space = Shape(integers(file, "grid"))};
  run.samples = integers(file, "batch")[0];
  run.inputs = integers(file, "input_channels")[0];
  run.outputs = integers(file, "output_channels")[0];
  run.steps = static_cast<int>(number(file, "steps"));
  run.row_weights = file.values("latitude_weights");
  const std::vector<double> weights = file.values("variable_weights");
  for (std::size_t c = 0; c < weights.size(); ++c) run.variable_weights[concat("v", c)] = weights[c];
  run.optimizer_options.learning_rate = number(file, "learning_rate");
  run.optimizer_options.betas = file.attribute("/", "betas");
  run.optimizer_options.eps = number(file, "epsilon");
  run.optimizer_options.weight_decay = number(file, "weight_decay");
  run.optimizer_options.clip_norm = number(file, "clip_norm");
  run.rate_factor = [rates = file.values("learning_rate"), peak = run.optimizer_options.learning_rate](
                        int step) { return rates.at(static_cast<std::size_t>(step - 1)) / peak; };
  for (const std::string& name : file.names("initial_parameters")) {
    run.initial[name] = file.values("initial_parameters/" + name);
  }
  Tensors data;  // read now: HDF5 is not for several threads
  for (int step = 1; step <= run.steps; ++step) {
    data[concat("x", step)] = file.row("inputs", step - 1);
    data[concat("y", step)] = file.row("targets", step - 1);
  }
  run.data = [data](const std::string& name, int step) { return data.at(concat(name, step)); };
  return run;
}

void check_network(const std::string& name, const std::function<Json(const GoldenFile&)>& model) {
  const GoldenFile file(name);
  const TrainingRun run = golden_run(file, model(file));
  for (const Sizes& mesh : {Sizes{}, {1, {2, 1}, 2}, {1, {1, 3}, 1}}) {
    SCOPED_TRACE(concat(name, " on ", mesh.ranks(), " ranks"));
    const TrainingRun::Result result = run.run(mesh);
    EXPECT_LE(relative_difference(result.outputs.at("output"), file.values("output_step_1")), 1e-11);
    EXPECT_LE(relative_difference(result.losses, file.values("loss")), 1e-10);
    EXPECT_LE(relative_difference(result.norms, file.values("gradient_norm")), 1e-10);
    const std::vector<std::string> names = file.names("parameters");
    ASSERT_EQ(result.gradients.size(), names.size());
    ASSERT_EQ(result.parameters.size(), names.size());
    for (const std::string& parameter : names) {
      // Some gradients vanish but for rounding, see the goldens' README.
      EXPECT_LE(relative_difference(result.gradients.at(parameter),
                                    file.values("gradients_step_1/" + parameter), 1e-3 * result.norms[0]),
                1e-10)
          << "gradient of " << parameter;
      EXPECT_LE(relative_difference(result.parameters.at(parameter), file.values("parameters/" + parameter)),
                1e-8)
          << "trained " << parameter;
    }
  }
}

TEST(GoldenMixer, TrainsAsTorch) {
  check_network("weathermixer.h5", mixer);
}

TEST(GoldenMixer, WithTheOutputMap) {
  check_network("weathermixer_output_map.h5", mixer);
}

TEST(GoldenVit, TrainsAsTorch) {
  check_network("vit.h5", vit);
}

TEST(GoldenSfno, TrainsAsTorch) {
  check_network("sfno.h5", sfno);
}

// ---- before any training

/// torch.nn.Linear draws weight and bias from U(-1/√K, 1/√K), K being the numbers that a product sums over.
TEST(StartOfAModel, LinearLayersStartAsTorchs) {
  TrainingRun run{.model = {{"type", "weathermixer"},
                            {"patch", {4, 4}},
                            {"embed_dim", 64},
                            {"depth", 1},
                            {"token_hidden_ratio", 2.0},
                            {"channel_hidden_ratio", 3.0}},
                  .space = {32, 48}};
  run.steps = 0;
  const double points = 4 * 4, tokens = 8 * 12, width = 64;
  const std::map<std::string, double> products = {{"encoder", points * static_cast<double>(run.inputs)},
                                                  {"blocks.0.token_mixing.fc1", tokens},
                                                  {"blocks.0.token_mixing.fc2", 2 * tokens},
                                                  {"blocks.0.channel_mixing.fc1", width},
                                                  {"blocks.0.channel_mixing.fc2", 3 * width},
                                                  {"decoder", width}};
  const TrainingRun::Result result = run.run({1, {2, 1}, 1});
  for (const auto& [layer, summed] : products) {
    const double bound = 1 / std::sqrt(summed);
    for (const char* part : {".weight", ".bias"}) {
      SCOPED_TRACE(layer + part);
      const std::vector<double>& values = result.parameters.at(layer + part);
      double sum = 0, squares = 0, largest = 0;
      for (const double value : values) {
        sum += value;
        squares += value * value;
        largest = std::max(largest, std::abs(value));
      }
      const auto count = static_cast<double>(values.size());
      EXPECT_LE(largest, bound);
      EXPECT_GT(largest, 0.7 * bound);
      // Of a mean and a mean square of so many draws, six standard deviations.
      EXPECT_NEAR(sum / count / bound, 0, 6 * std::sqrt(1.0 / 3 / count));
      EXPECT_NEAR(squares / count / (bound * bound), 1.0 / 3, 6 * std::sqrt(4.0 / 45 / count));
    }
  }
}

}  // namespace
}  // namespace jigsaw
