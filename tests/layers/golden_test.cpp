// Layers and whole training runs in float64 against PyTorch's numbers, on one rank and on meshes.
#include <gtest/gtest.h>

#include <mutex>

#include "layers/layer_norm.h"
#include "layers/linear.h"
#include "layers/mixing.h"
#include "layers/patches.h"
#include "layers/pointwise_layers.h"
#include "layers/training_run.h"
#include "optim/schedule.h"
#include "support/golden_file.h"

namespace jigsaw {
namespace {

using testing::GoldenFile;
using testing::relative_difference;
using testing::Tensors;
using Sizes = TrainingRun::MeshSizes;

// ---- single layers

struct LayerGolden {
  std::string name;
  Shape field;  ///< the input as [B, space…, C]
  std::function<LayerPtr(const LayerSite&)> build;
  std::vector<double> input, output_gradient;
  Tensors parameters,
      expected;  ///< expected: "output", "input" and the gradients of parameters by their name
};

LayerGolden read_layer(const std::string& name, const Shape& field,
                       std::function<LayerPtr(const LayerSite&)> build) {
  const GoldenFile file("layers.h5");
  LayerGolden golden{
      name, field, std::move(build), file.values(name + "/input"), file.values(name + "/output_gradient"),
      {},   {}};
  for (const std::string& parameter : file.names(name + "/parameters")) {
    golden.parameters[parameter] = file.values(name + "/parameters/" + parameter);
    golden.expected[parameter] = file.values(name + "/parameter_gradients/" + parameter);
  }
  golden.expected["output"] = file.values(name + "/output");
  golden.expected["input"] = file.values(name + "/input_gradient");
  return golden;
}

/// This rank's part of what is expected.
Tensors run_layer(const Rank& rank, const LayerGolden& golden) {
  ParameterBlock block("layer");
  Shape space;
  for (int dim = 1; dim + 1 < golden.field.rank(); ++dim) space.append(golden.field[dim]);
  const LayerPtr layer = golden.build({block, "", {space, golden.field.back()}, "layer"});
  const BlockSpec spec{"layer", &block, false, layer->output_units()};
  const Layout layout = rank.mesh.field_layout(golden.field, layer->input_units());
  const auto run = [&](Tape& tape, const std::vector<Variable>& x) { return layer->run(tape, x[0]); };

  PlanBook plans;
  Tape trace(rank, plans, Tape::Mode::kTrace, DType::kFloat64);
  trace.block(spec, {Variable::traced(layout, -1)}, run);
  block.materialise(rank, Zero::kNone, DType::kFloat64, DType::kFloat64, 1);
  testing::load(block, golden.parameters);

  Tape tape(rank, plans, Tape::Mode::kRecord, DType::kFloat64);
  const Variable x({testing::cut_piece(rank, layout, DType::kFloat64, golden.input), layout}, true);
  const Variable y = tape.block(spec, {x}, run);
  const Array dy = testing::cut_piece(rank, y.layout(), DType::kFloat64, golden.output_gradient);
  y.slot()->add(rank, {dy, y.layout()});
  tape.backward();

  Tensors result;
  const auto paste = [&](const std::string& name, const ShardedTensor& value) {
    result[name].assign(static_cast<std::size_t>(value.layout.global.count()), NAN);
    testing::paste_piece(rank, value.layout, value.piece, result[name]);
  };
  paste("output", y.value());
  paste("input", x.slot()->take());
  for (auto& group : block.groups()) {
    group->synchronise_gradients();
    testing::collect(group->owned_segments(), group->owned_gradient(), result);
  }
  return result;
}

void check_layer(const LayerGolden& golden) {
  const auto domain_axes = static_cast<std::size_t>(golden.field.rank() - 2);
  for (const std::pair<int, int>& sizes : {std::pair{1, 1}, {2, 1}, {1, 2}, {3, 1}, {2, 2}}) {
    SCOPED_TRACE(concat(golden.name, " on domain ", sizes.first, " × tensor ", sizes.second));
    std::vector<int> domain(domain_axes, 1);
    domain[0] = sizes.first;
    Tensors all;
    std::mutex mutex;
    run_ranks(sizes.first * sizes.second, [&](Communicator& world) {
      Mesh mesh(world, 1, domain, sizes.second);
      const Tensors mine = run_layer(Rank{world.context(), mesh}, golden);
      const std::lock_guard lock(mutex);
      testing::merge(all, mine);
    });
    ASSERT_EQ(all.size(), golden.expected.size());
    for (const auto& [name, values] : golden.expected) {
      EXPECT_LE(relative_difference(all.at(name), values), 1e-10) << name;
    }
  }
}

/// Builds a layer from its options.
template <typename L, typename Options>
std::function<LayerPtr(const LayerSite&)> layer(const Options& options) {
  return [options](const LayerSite& site) { return std::make_unique<L>(site, options); };
}

TEST(GoldenLayer, Linear) {
  check_layer(read_layer("linear", {3, 5, 7}, layer<Linear>(LinearOptions{4})));
}

TEST(GoldenLayer, LayerNorm) {
  check_layer(read_layer("layer_norm", {3, 5, 7}, layer<LayerNorm>(LayerNormOptions{})));
}

TEST(GoldenLayer, Gelu) {
  check_layer(read_layer("gelu", {2, 19, 1}, layer<Gelu>(GeluOptions{})));
}

TEST(GoldenLayer, Mlp) {
  check_layer(read_layer("mlp", {1, 3, 7}, layer<ChannelMixing>(ChannelMixingOptions{9.0 / 7})));
}

TEST(GoldenLayer, TokenMixing) {
  check_layer(read_layer("token_mixing", {2, 3, 5, 4}, layer<TokenMixing>(TokenMixingOptions{7.0 / 15})));
}

TEST(GoldenLayer, ChannelMixing) {
  check_layer(
      read_layer("channel_mixing", {2, 3, 5, 4}, layer<ChannelMixing>(ChannelMixingOptions{9.0 / 4})));
}

TEST(GoldenLayer, PatchEmbed) {
  check_layer(read_layer("patch_embed", {2, 7, 10, 3}, layer<PatchEmbed>(PatchEmbedOptions{{3, 4}, 5})));
}

TEST(GoldenLayer, PatchRecover) {
  check_layer(read_layer("patch_recover", {2, 3, 3, 5},
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
  LossOptions options;
  for (std::size_t c = 0; c < weights.size(); ++c) options.variable_weights[concat("v", c)] = weights[c];
  const FieldLoss loss(options, file.values("mse/latitude_weights"), {"v0", "v1", "v2"});

  // Read before ranks start: HDF5 is not for several threads.
  const double value = file.values("mse/loss")[0];
  const std::vector<double> expected = file.values("mse/prediction_gradient");
  for (const Sizes& sizes : {Sizes{}, {2, {1, 1}, 1}, {1, {3, 1}, 1}, {1, {1, 2}, 2}, {1, {1, 1}, 2}}) {
    Tensors gradient;
    std::mutex mutex;
    run_ranks(sizes.ranks(), [&](Communicator& world) {
      Mesh mesh(world, sizes.data, sizes.domain, sizes.tensor);
      const Rank rank{world.context(), mesh};
      const Layout layout = mesh.field_layout(prediction.shape);
      const Array x = testing::cut_piece(rank, layout, DType::kFloat64, prediction.values);
      const Array y = testing::cut_piece(rank, layout, DType::kFloat64, target);
      const GlobalSums sums = loss.sums(rank, loss.norm(), x, y, layout);
      Tensors mine{{"prediction", std::vector<double>(target.size(), NAN)}};
      testing::paste_piece(rank, layout, loss.gradient(rank, sums, 1.0, x, y, layout), mine.at("prediction"));
      const std::lock_guard lock(mutex);
      EXPECT_NEAR(loss.value(sums) / value, 1, 1e-12);
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

TrainingRun golden_run(const GoldenFile& file, const Json& model) {
  TrainingRun run{.model = model, .space = Shape(integers(file, "grid"))};
  run.samples = integers(file, "batch")[0];
  run.inputs = integers(file, "input_channels")[0];
  run.outputs = integers(file, "output_channels")[0];
  run.steps = static_cast<int>(number(file, "steps"));
  run.row_weights = file.values("latitude_weights");
  const std::vector<double> weights = file.values("variable_weights");
  for (std::size_t c = 0; c < weights.size(); ++c) run.variable_weights[concat("v", c)] = weights[c];
  run.optimizer_options = {.learning_rate = number(file, "learning_rate"),
                           .betas = file.attribute("/", "betas"),
                           .eps = number(file, "epsilon"),
                           .weight_decay = number(file, "weight_decay"),
                           .clip_norm = number(file, "clip_norm")};
  const ScheduleOptions schedule{ScheduleType::kCosine, integers(file, "warmup_steps")[0],
                                 number(file, "final_learning_rate")};
  run.rate_factor = [schedule, rate = number(file, "learning_rate"), steps = run.steps](int step) {
    return learning_rate_at(schedule, rate, step, steps) / rate;
  };
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

}  // namespace
}  // namespace jigsaw
