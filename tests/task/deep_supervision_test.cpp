// Losses of a U-Net's outputs on several grids against PyTorch's numbers, on one rank and on meshes.
#include "task/deep_supervision.h"

#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "base/error.h"
#include "base/text.h"
#include "config/config.h"
#include "layers/registry.h"
#include "support/golden_file.h"
#include "support/parameters.h"
#include "support/test_ranks.h"
#include "task/loss_types.h"

namespace jigsaw {
namespace deep_supervision_test {

using testing::GoldenFile;
using testing::relative_difference;
using testing::Tensors;

struct Section {
  Tagged model, loss;
};
void declare(Keys<Section>& keys) {
  keys.tagged("model", &Section::model, model_types).doc("The network.");
  keys.tagged("loss", &Section::loss, loss_types).doc("What is minimised.");
}

struct Sizes {
  int data = 1;
  std::vector<int> domain = {1, 1, 1};
  int tensor = 1;
  int ranks() const { return data * domain[0] * domain[1] * domain[2] * tensor; }
};

const Shape kField{2, 5, 12, 9, 2};
constexpr std::int64_t kOutputs = 3;

Section options() {
  return parse<Section>(Json{{"model",
                              {{"type", "unet"},
                               {"widths", {2, 3, 4, 4}},
                               {"kernels", {{1, 3, 3}, 3, 3, 3}},
                               {"strides", {1, {1, 2, 2}, 2, {2, 2, 1}}},
                               {"blocks", {1, 2, 2, 1}},
                               {"decoder_convolutions", {1, 2, 1}},
                               {"norm_groups", "channels"},
                               {"down", "first_conv"},
                               {"up", "conv_transpose"},
                               {"activation", "leaky_relu"},
                               {"deep_supervision", true}}},
                             {"loss", {{"type", "dice_cross_entropy"}}}});
}

/// A step: what goes in, and the loss and the gradients of the parameters.
struct Step {
  std::vector<double> input, target;
  Tensors parameters;
  double loss = 0, empty = 0;
  Tensors gradients;
};

Step golden(const std::string& kind) {
  const GoldenFile file("residual_unet.h5");
  Step step{file.values("residual_unet/input"), file.values(kind + "/target"), {}, {}, {}, {}};
  for (const std::string group : {"residual_unet/parameters", "sides"}) {
    for (const std::string& name : file.names(group)) step.parameters[name] = file.values(group + "/" + name);
  }
  for (const std::string& name : file.names(kind + "/parameter_gradients"))
    step.gradients[name] = file.values(kind + "/parameter_gradients/" + name);
  step.loss = file.values(kind + "/loss")[0];
  return step;
}

/// The same step on a mesh.
Step on_mesh(const Step& given, bool regions, const Sizes& sizes) {
  Step found = given;
  found.gradients.clear();
  std::mutex mutex;
  int ranks = 0;
  const std::int64_t samples = std::ssize(given.target) / (5 * 12 * 9 * (regions ? kOutputs : 1));
  testing::run_test_ranks(sizes.ranks(), {}, Backend::kReference, [&](Communicator& world) {
    Mesh mesh(world, sizes.data, sizes.domain, sizes.tensor);
    const Rank rank{world.context(), mesh};
    const Section section = options();
    const ClassLoss loss(class_loss_options(section.loss, regions), kOutputs, std::vector<double>(5, 1.0));
    const auto model = build_model(section.model, {{5, 12, 9}, kField.back(), kOutputs});
    PlanBook plans;
    plan_and_materialise(*model, rank, plans, samples, Zero::kNone, DType::kFloat64, DType::kFloat64, 1);
    for (ParameterBlock* block : model->parameters())
      testing::load(world.context(), *block, given.parameters);
    const DeepSupervision supervision(*model, loss);
    supervision.plan(rank, plans, samples);
    Tape tape(rank, plans, Tape::Mode::kRecord, DType::kFloat64);
    const Layout layout = model->input_layout(mesh, samples);
    const Variable x({testing::cut_piece(rank, layout, DType::kFloat64, given.input), layout}, false);
    std::vector<Variable> sides;
    const Variable y = model->forward(tape, x, &sides);
    EXPECT_EQ(sides.size(), 1U);
    const Array target =
        testing::cut_piece(rank, loss.target_layout(mesh, y.layout()), DType::kFloat64, given.target);
    const WeightedMean mean =
        supervision.backward(rank, plans, {y, sides}, target, 1.0 / loss.full_weight(samples))
            .read(world.context());
    tape.backward();
    Tensors mine;
    for (ParameterBlock* block : model->parameters()) {
      for (auto& group : block->groups()) {
        group->synchronise_gradients();
        testing::collect(group->owned_segments(), group->owned_gradient(), mine);
      }
    }
    const std::lock_guard lock(mutex);
    found.loss = mean.value();
    found.empty = mean.empty;
    testing::merge(found.gradients, mine);
    ++ranks;
  });
  EXPECT_EQ(ranks, sizes.ranks());
  return found;
}

const std::vector<Sizes> kMeshes = {
    {1, {1, 1, 1}, 1}, {2, {1, 1, 1}, 1}, {1, {1, 2, 2}, 1}, {1, {1, 3, 1}, 2}, {1, {4, 1, 1}, 1}};

TEST(DeepSupervision, IsTorchsOnEveryMesh) {
  for (const std::string kind : {"labels", "regions"}) {
    const Step wanted = golden(kind);
    EXPECT_EQ(wanted.gradients.count("decoder.1.head.weight"), 1U);
    for (const Sizes& sizes : kMeshes) {
      SCOPED_TRACE(concat(kind, " on ", sizes.ranks(), " ranks"));
      const Step found = on_mesh(wanted, kind == "regions", sizes);
      EXPECT_NEAR(found.loss / wanted.loss, 1, 1e-12);
      ASSERT_EQ(found.gradients.size(), wanted.gradients.size());
      for (const auto& [name, values] : wanted.gradients) {
        // A bias in front of a norm that takes it away again has no gradient but rounding.
        EXPECT_LE(relative_difference(found.gradients.at(name), values, 1e-4), 1e-9) << name;
      }
    }
  }
}

/// Where a coarse target has nothing that counts, its sample weighs nothing there, and is not said to be
/// empty.
TEST(DeepSupervision, CountsEmptySamplesOfTheFinestTargetAlone) {
  Step step = golden("labels");
  const std::size_t points = 5 * 12 * 9;
  for (std::size_t i = 0; i < points; ++i) step.target[i] = i == 0 ? 1.0 : NAN;  // no coarse point reads it
  const Step one = on_mesh(step, false, {});
  EXPECT_EQ(one.empty, 0);
  EXPECT_TRUE(std::isfinite(one.loss));
  const Step two = on_mesh(step, false, {1, {1, 2, 1}, 1});
  EXPECT_NEAR(two.loss / one.loss, 1, 1e-12);
  for (std::size_t i = 0; i < points; ++i) step.target[i] = NAN;
  EXPECT_EQ(on_mesh(step, false, {}).empty, 1);
}

TEST(DeepSupervision, IsForLabelsAlone) {
  const auto model = build_model(options().model, {{5, 12, 9}, 2, 1});
  const FieldLoss loss({}, std::vector<double>(5, 1.0), {"a"});
  try {
    const DeepSupervision supervision(*model, loss);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const ConfigError& error) {
    EXPECT_EQ(std::string(error.what()).find("model.deep_supervision is for targets that are labels"), 0U)
        << error.what();
  }
}

}  // namespace deep_supervision_test
}  // namespace jigsaw
