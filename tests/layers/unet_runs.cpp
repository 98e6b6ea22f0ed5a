#include "layers/unet_runs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "layers/registry.h"

namespace jigsaw::testing::unet_runs {

void declare(Keys<ModelSection>& keys) {
  keys.tagged("model", &ModelSection::model, model_types).required().doc("The network.");
}

double made_up(std::int64_t index, double phase) {
  return std::sin(phase + 0.37 * static_cast<double>(index) +
                  1e-3 * static_cast<double>(index * index % 1009));
}

namespace {

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
    if (!run.parameters.empty()) load(rank.context, *block, run.parameters);
  }
  const auto piece = [&](const Layout& layout, const std::vector<double>& values, double phase) {
    return values.empty()
               ? make_piece(rank, layout, run.dtype, [=](std::int64_t i) { return made_up(i, phase); })
               : cut_piece(rank, layout, run.dtype, values);
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
    paste_piece(rank, value.layout, value.piece, result[name]);
  };
  paste("output", y.value());
  paste("input", x.slot()->take());
  for (ParameterBlock* block : model->parameters()) {
    for (auto& group : block->groups()) {
      group->synchronise_gradients();
      collect(group->owned_segments(), group->owned_gradient(), result);
    }
  }
  return result;
}

}  // namespace

ModelRun::Result run_on(const ModelRun& run, const std::vector<int>& domain, int tensor, int data) {
  int ranks = tensor * data;
  for (const int size : domain) ranks *= size;
  ModelRun::Result result;
  result.peak_activation_bytes.resize(static_cast<std::size_t>(ranks));
  std::mutex mutex;
  const Backend backend = run.dtype == DType::kFloat64 ? Backend::kReference : Backend::kCpu;
  run_test_ranks(ranks, {}, backend, [&](Communicator& world) {
    Mesh mesh(world, data, domain, tensor);
    const Tensors mine = run_rank(Rank{world.context(), mesh}, run);
    const std::lock_guard lock(mutex);
    merge(result.tensors, mine);
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

}  // namespace jigsaw::testing::unet_runs
