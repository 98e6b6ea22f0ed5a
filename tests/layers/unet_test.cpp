// U-Nets against PyTorch's numbers and against themselves on meshes: odd extents at every level.
#include <gtest/gtest.h>

#include <functional>
#include <mutex>
#include <numeric>

#include "base/error.h"
#include "base/text.h"
#include "config/config.h"
#include "layers/model.h"
#include "layers/registry.h"
#include "support/golden_file.h"
#include "support/parameters.h"
#include "support/test_ranks.h"

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
  PoleCrossing crossing = {};     ///< of the input's channels

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
  const ModelDescription description{space_of(run.field), run.field.back(), run.outputs, {}, run.crossing};
  const auto model = build_model(parse<ModelSection>(Json{{"model", run.model}}).model, description);
  model->set_recompute(run.recompute);
  PlanBook plans;
  plan_and_materialise(*model, rank, plans, run.field[0], Zero::kNone, run.dtype, run.dtype, 1);
  for (ParameterBlock* block : model->parameters()) {
    if (!run.parameters.empty()) testing::load(rank.context, *block, run.parameters);
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
  testing::run_test_ranks(ranks, {}, backend, [&](Communicator& world) {
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

// ---- around the globe

/// A U-Net of one level on a globe, one number at a time: winds turn round beyond a pole, in their own units.
class GlobeLoops {
 public:
  GlobeLoops(const ModelRun& run, bool pole_is_a_row, const std::vector<double>& mean,
             const std::vector<double>& deviation)
      : run_(run), pole_is_a_row_(pole_is_a_row), mean_(mean), deviation_(deviation) {}

  /// The input's channels, with number 1 and 2 the components of a wind.
  static PoleCrossing crossing(const std::vector<double>& mean, const std::vector<double>& deviation) {
    return {{1, -1, -1}, {0, -2 * mean[1] / deviation[1], -2 * mean[2] / deviation[2]}};
  }

  std::vector<double> output(const std::vector<double>& input, const Tensors& parameters) const {
    std::vector<double> result;
    const std::size_t sample = input.size() / static_cast<std::size_t>(run_.field[0]);
    for (std::size_t first = 0; first < input.size(); first += sample) {
      const auto begin = input.begin() + static_cast<std::ptrdiff_t>(first);
      const auto of = [&](const std::string& name) { return parameters.at(name); };
      std::vector<double> x(begin, begin + static_cast<std::ptrdiff_t>(sample));
      x = gelu(convolve(x, 3, of("encoder.0.conv1.weight"), of("encoder.0.conv1.bias"), true));
      x = gelu(convolve(x, 3, of("encoder.0.conv2.weight"), of("encoder.0.conv2.bias"), false));
      x = convolve(x, 1, of("head.weight"), of("head.bias"), false);
      result.insert(result.end(), x.begin(), x.end());
    }
    return result;
  }

 private:
  std::vector<double> convolve(const std::vector<double>& x, std::int64_t kernel,
                               const std::vector<double>& weight, const std::vector<double>& bias,
                               bool winds) const {
    const std::int64_t in = std::ssize(x) / (rows() * columns()), out = std::ssize(bias);
    std::vector<double> y;
    for (std::int64_t point = 0; point < rows() * columns(); ++point) {
      for (std::int64_t o = 0; o < out; ++o) {
        y.push_back(bias[static_cast<std::size_t>(o)]);
        for (std::int64_t tap = 0; tap < in * kernel * kernel; ++tap) {
          const std::int64_t c = tap / (kernel * kernel), i = tap / kernel % kernel, j = tap % kernel;
          y.back() +=
              weight[static_cast<std::size_t>(o * in * kernel * kernel + tap)] *
              read(x, in, point / columns() + i - kernel / 2, point % columns() + j - kernel / 2, c, winds);
        }
      }
    }
    return y;
  }

  double read(const std::vector<double>& x, std::int64_t channels, std::int64_t row, std::int64_t column,
              std::int64_t channel, bool winds) const {
    const bool beyond = row < 0 || row >= rows();
    if (row < 0) row = pole_is_a_row_ ? -row : -1 - row;
    if (row >= rows()) row = (pole_is_a_row_ ? 2 * rows() - 2 : 2 * rows() - 1) - row;
    column = (column + columns() + (beyond ? columns() / 2 : 0)) % columns();
    const double value = x[static_cast<std::size_t>((row * columns() + column) * channels + channel)];
    if (!beyond || !winds || channel == 0) return value;
    const auto c = static_cast<std::size_t>(channel);
    const double wind = value * deviation_[c] + mean_[c];
    return (-wind - mean_[c]) / deviation_[c];
  }

  static std::vector<double> gelu(std::vector<double> x) {
    for (double& value : x) value *= 0.5 * (1 + std::erf(value / std::sqrt(2.0)));
    return x;
  }
  std::int64_t rows() const { return run_.field[1]; }
  std::int64_t columns() const { return run_.field[2]; }

  const ModelRun& run_;
  bool pole_is_a_row_;
  std::vector<double> mean_, deviation_;
};

std::vector<double> made_up_values(std::int64_t count, double phase) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(made_up(i, phase));
  return values;
}

/// The slope of Σ output · gradient along each number of `values`, by central differences of `output`.
std::vector<double> slopes(std::vector<double>& values, const std::vector<double>& gradient,
                           const std::function<std::vector<double>()>& output) {
  constexpr double kStep = 1e-4;
  std::vector<double> result;
  for (double& value : values) {
    const double middle = value;
    const auto at = [&](double moved) {
      value = moved;
      const std::vector<double> y = output();
      return std::inner_product(y.begin(), y.end(), gradient.begin(), 0.0);
    };
    result.push_back((at(middle + kStep) - at(middle - kStep)) / (2 * kStep));
    value = middle;
  }
  return result;
}

TEST(UNet, WindsTurnRoundBeyondThePoles) {
  const std::vector<double> mean = {280, 3, -0.5}, deviation = {20, 8, 6};
  for (const bool pole_is_a_row : {false, true}) {
    for (const std::int64_t batch : {1, 3}) {
      ModelRun run{{{"type", "unet"},
                    {"widths", {2}},
                    {"norm_groups", 0},
                    {"padding_mode", {pole_is_a_row ? "pole_point" : "pole_cell", "circular"}}},
                   {batch, 5, 6, 3},
                   2,
                   {},
                   {}};
      run.crossing = GlobeLoops::crossing(mean, deviation);
      run.input = made_up_values(batch * 5 * 6 * 3, 0.1);
      run.output_gradient = made_up_values(batch * 5 * 6 * 2, 2.0);
      for (const auto& [name, count] : std::map<std::string, std::int64_t>{{"encoder.0.conv1.weight", 54},
                                                                           {"encoder.0.conv1.bias", 2},
                                                                           {"encoder.0.conv2.weight", 36},
                                                                           {"encoder.0.conv2.bias", 2},
                                                                           {"head.weight", 4},
                                                                           {"head.bias", 2}}) {
        run.parameters[name] = made_up_values(count, static_cast<double>(name.size()));
      }
      const GlobeLoops loops(run, pole_is_a_row, mean, deviation);
      Tensors parameters = run.parameters, expected;
      std::vector<double> input = run.input;
      const auto output = [&] { return loops.output(input, parameters); };
      expected["output"] = output();
      for (auto& [name, values] : parameters) expected[name] = slopes(values, run.output_gradient, output);
      expected["input"] = slopes(input, run.output_gradient, output);
      for (const auto& [domain, tensor] : std::vector<std::pair<std::vector<int>, int>>{
               {{1, 1}, 1}, {{2, 1}, 1}, {{1, 3}, 1}, {{4, 1}, 1}, {{3, 2}, 1}, {{2, 2}, 2}}) {
        SCOPED_TRACE(concat(pole_is_a_row ? "pole_point" : "pole_cell", ", batch ", batch, ", domain [",
                            join(domain, ", "), "] tensor ", tensor));
        const Tensors made = run_on(run, domain, tensor).tensors;
        EXPECT_LE(relative_difference(made.at("output"), expected.at("output")), 1e-12);
        expect_equal(made, expected, 1e-6);
      }
    }
  }
}

TEST(UNet, WithWindsIsOneFunctionOnEveryMesh) {
  ModelRun run{{{"type", "unet"},
                {"base_width", 4},
                {"levels", 3},
                {"norm_groups", 2},
                {"padding_mode", {"pole_cell", "circular"}}},
               {1, 17, 24, 3},
               2,
               {},
               {}};
  const Tensors scalars = run_on(run, {1, 1}, 1).tensors;
  run.crossing = GlobeLoops::crossing({280, 3, -0.5}, {20, 8, 6});
  for (const std::int64_t batch : {1, 3}) {
    run.field[0] = batch;
    const Tensors one = run_on(run, {1, 1}, 1).tensors;
    if (batch == 1) {
      EXPECT_GT(relative_difference(one.at("output"), scalars.at("output")), 1e-3);
    }
    for (const auto& [domain, tensor] : std::vector<std::pair<std::vector<int>, int>>{
             {{2, 1}, 1}, {{1, 3}, 1}, {{4, 1}, 1}, {{2, 3}, 1}, {{1, 8}, 1}, {{2, 2}, 2}}) {
      SCOPED_TRACE(concat("batch ", batch, ", domain [", join(domain, ", "), "] tensor ", tensor));
      expect_equal(run_on(run, domain, tensor).tensors, one, 1e-10);
    }
  }
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

/// The levels of a U-Net on a globe whose poles are rows, from the finest, as a chain in which each
/// convolution reads a field padded by one row at either end as `low` and `high` say of its level.
Json levels_between_poles(const std::string& down, const std::vector<std::string>& low,
                          const std::vector<std::string>& high, std::size_t level = 0) {
  const auto pad = [](const Json& before, const Json& behind, const std::string& mode) {
    return Json{{"type", "pad"}, {"low", before}, {"high", behind}, {"padding_mode", {mode, "circular"}}};
  };
  const auto convolve = [&](Json& layers, std::size_t at, std::int64_t stride, std::int64_t width) {
    layers.push_back(pad({1, 0}, {0, 0}, low[at]));
    layers.push_back(pad({0, 0}, {1, 0}, high[at]));
    layers.push_back(pad({0, 1}, {0, 1}, "zeros"));
    layers.push_back({{"type", "conv"}, {"features", width}, {"kernel", 3}, {"stride", stride}});
  };
  Json layers = Json::array();
  const auto width = static_cast<std::int64_t>(3 + level);
  const auto convolutions = [&] {
    for (int i = 0; i < 2; ++i) {
      convolve(layers, level, 1, width);
      layers.push_back({{"type", "gelu"}});
    }
  };
  if (level > 0 && down == "conv") convolve(layers, level - 1, 2, width);
  if (level > 0 && down != "conv") layers.push_back({{"type", down}, {"kernel", 2}, {"ceil_mode", true}});
  convolutions();
  if (level + 1 < low.size()) {
    Json inner = levels_between_poles(down, low, high, level + 1);
    inner.push_back({{"type", "upsample"}, {"scale", 2}});
    layers.push_back({{"type", "concat_skip"}, {"layers", inner}});
    convolutions();
  }
  return layers;
}

TEST(UNet, KnowsWhereThePolesOfCoarserLevelsLie) {
  struct Case {
    std::int64_t rows;
    std::string down;
    std::vector<std::string> low, high;
  };
  const std::string point = "pole_point", cell = "pole_cell";
  // 7 rows are halved to 4 and 2; 10 to 5 and 3.
  for (const Case& globe : {Case{7, "conv", {point, point, point}, {point, point, cell}},
                            Case{7, "max_pool", {point, cell, cell}, {point, point, cell}},
                            Case{10, "conv", {point, point, point}, {point, cell, cell}},
                            Case{10, "avg_pool", {point, cell, cell}, {point, cell, cell}}}) {
    SCOPED_TRACE(concat(globe.rows, " rows, ", globe.down));
    const ModelRun named{{{"type", "unet"},
                          {"widths", {3, 4, 5}},
                          {"norm_groups", 0},
                          {"down", globe.down},
                          {"padding_mode", {point, "circular"}}},
                         {1, globe.rows, 8, 2},
                         2,
                         {},
                         {}};
    Json layers = levels_between_poles(globe.down, globe.low, globe.high);
    layers.push_back({{"type", "conv"}, {"features", 2}, {"kernel", 1}});
    ModelRun said = named;
    said.model = {{"type", "sequential"}, {"layers", layers}};
    const auto names_of = [&](const Json& model) {
      const auto built =
          build_model(parse<ModelSection>(Json{{"model", model}}).model, {{globe.rows, 8}, 2, 2});
      std::vector<std::pair<std::string, std::int64_t>> names;
      for (const ParameterBlock* block : built->parameters()) {
        for (const auto& parameter : block->parameters())
          names.emplace_back(parameter->name(), parameter->shape().count());
      }
      return names;
    };
    const auto names = names_of(named.model), others = names_of(said.model);
    ASSERT_EQ(names.size(), others.size());
    ModelRun run = named;
    for (std::size_t i = 0; i < names.size(); ++i) {
      std::vector<double> values = made_up_values(names[i].second, static_cast<double>(i));
      for (double& value : values) value *= 0.3;
      run.parameters[names[i].first] = said.parameters[others[i].first] = values;
    }
    const Tensors expected = run_on(said, {1, 1}, 1).tensors;
    for (const int domain : {1, 2}) {
      const Tensors found = run_on(run, {domain, 1}, domain).tensors;
      EXPECT_LE(relative_difference(found.at("output"), expected.at("output")), 1e-12);
      EXPECT_LE(relative_difference(found.at("input"), expected.at("input")), 1e-12);
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

}  // namespace
}  // namespace jigsaw
