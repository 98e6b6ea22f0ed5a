// U-Nets against PyTorch's numbers and against themselves on meshes: odd extents at every level.
#include <gtest/gtest.h>

#include <mutex>

#include "base/error.h"
#include "base/text.h"
#include "comm/thread/run_ranks.h"
#include "config/config.h"
#include "layers/model.h"
#include "layers/registry.h"
#include "support/golden_file.h"
#include "support/parameters.h"

namespace jigsaw {
namespace {

using testing::GoldenFile;
using testing::relative_difference;
using testing::Tensors;

struct ModelSection {
  Tagged model;
};
void declare(Keys<ModelSection>& keys) {
  keys.tagged("model", &ModelSection::model, model_types).required().doc("The network.");
}

/// One forward and backward pass of a model, given its upstream gradient.
struct ModelRun {
  Json model;
  Shape field;  ///< the input
  std::int64_t outputs = 1;
  std::vector<double> input, output_gradient;  ///< empty: made up
  Tensors parameters;                          ///< empty: as the model starts
  bool recompute = false;
  DType dtype = DType::kFloat64;  ///< fp32 runs on the fast kernels

  struct Result {
    Tensors tensors;  ///< "output", "input" and the gradients of parameters
    std::vector<std::int64_t> peak_activation_bytes;
  };
};

double made_up(std::int64_t index, double phase) {
  return std::sin(phase + 0.37 * static_cast<double>(index) +
                  1e-3 * static_cast<double>(index * index % 1009));
}

Shape with_channels(Shape field, std::int64_t channels) {
  field[field.rank() - 1] = channels;
  return field;
}

Shape space_of(const Shape& field) {
  return Shape(std::span(field.begin() + 1, static_cast<std::size_t>(field.rank() - 2)));
}

Tensors run_rank(const Rank& rank, const ModelRun& run) {
  const ModelDescription description{space_of(run.field), run.field.back(), run.outputs};
  const auto model = build_model(parse<ModelSection>(Json{{"model", run.model}}).model, description);
  model->set_recompute(run.recompute);
  PlanBook plans;
  plan_and_materialise(*model, rank, plans, run.field[0], Zero::kNone, run.dtype, run.dtype, 1);
  for (ParameterBlock* block : model->parameters()) {
    if (!run.parameters.empty()) testing::load(*block, run.parameters);
  }
  const auto piece = [&](const Layout& layout, const std::vector<double>& values, double phase) {
    return values.empty() ? testing::make_piece(rank, layout, run.dtype,
                                                [=](std::int64_t i) { return made_up(i, phase); })
                          : testing::cut_piece(rank, layout, run.dtype, values);
  };
  rank.context.arena().reset_peaks();
  Tape tape(rank, plans, Tape::Mode::kRecord, run.dtype);
  const Layout layout = model->input_layout(rank.mesh, run.field[0]);
  const Variable x({piece(layout, run.input, 0.1), layout}, true);
  const Variable y = model->forward(tape, x);
  EXPECT_EQ(y.shape(), with_channels(run.field, run.outputs));
  y.slot()->add(rank, {piece(y.layout(), run.output_gradient, 2.0), y.layout()});
  tape.backward();
  Tensors result;
  const auto paste = [&](const std::string& name, const ShardedTensor& value) {
    result[name].assign(static_cast<std::size_t>(value.layout.global.count()), NAN);
    testing::paste_piece(rank, value.layout, value.piece, result[name]);
  };
  paste("output", y.value());
  paste("input", x.slot()->take());
  for (ParameterBlock* block : model->parameters()) {
    for (auto& group : block->groups()) {
      group->synchronise_gradients();
      testing::collect(group->owned_segments(), group->owned_gradient(), result);
    }
  }
  return result;
}

ModelRun::Result run_on(const ModelRun& run, const std::vector<int>& domain, int tensor, int data = 1) {
  int ranks = tensor * data;
  for (const int size : domain) ranks *= size;
  ModelRun::Result result;
  result.peak_activation_bytes.resize(static_cast<std::size_t>(ranks));
  std::mutex mutex;
  const Backend backend = run.dtype == DType::kFloat64 ? Backend::kReference : Backend::kCpu;
  const auto context = [backend](int) { return Context::make_host(backend, 1); };
  run_ranks(ranks, {}, context, [&](Communicator& world) {
    Mesh mesh(world, data, domain, tensor);
    const Tensors mine = run_rank(Rank{world.context(), mesh}, run);
    const std::lock_guard lock(mutex);
    testing::merge(result.tensors, mine);
    result.peak_activation_bytes[static_cast<std::size_t>(world.rank())] =
        world.context().arena().peak_bytes(Purpose::kActivations);
  });
  return result;
}

void expect_equal(const Tensors& actual, const Tensors& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [name, values] : expected) {
    // A bias in front of a norm that takes it away again has no gradient but rounding.
    EXPECT_LE(relative_difference(actual.at(name), values, 1e-3), tolerance) << name;
  }
}

// ---- PyTorch's numbers

ModelRun golden_run(const std::string& name, const Json& model, const Shape& field, std::int64_t outputs,
                    Tensors& expected) {
  const GoldenFile file("unets.h5");
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

// ---- one function

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
  const std::string odd = refusal({{"type", "unet"},
                                   {"base_width", 4},
                                   {"levels", 2},
                                   {"norm_groups", 2},
                                   {"padding_mode", {"pole_cell", "circular"}}},
                                  {33, 49});
  EXPECT_NE(odd.find("padding_mode"), std::string::npos) << odd;
  EXPECT_NE(odd.find("50 columns"), std::string::npos) << odd;
}

}  // namespace
}  // namespace jigsaw
