#include "layers/training_run.h"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "config/config.h"
#include "support/test_ranks.h"

namespace jigsaw {

namespace {

/// Normal numbers by global element: the same on every mesh.
Array made_up(const Rank& rank, const Layout& layout, DType dtype, const std::string& name, int step) {
  const RandomStream random(3, RandomPurpose::kNoise, name);
  const RandomPosition at{static_cast<std::uint64_t>(step), 0, 0};
  return testing::make_piece(rank, layout, dtype, [&](std::int64_t index) {
    return random.normal(at, static_cast<std::uint64_t>(index));
  });
}

/// The elements that this rank holds, in their places; NaN elsewhere.
std::vector<double> whole_output(const Rank& rank, const ShardedTensor& y) {
  std::vector<double> whole(static_cast<std::size_t>(y.layout.global.count()), NAN);
  testing::paste_piece(rank, y.layout, y.piece, whole);
  return whole;
}

struct ModelSection {
  Tagged model;
};
void declare(Keys<ModelSection>& keys) {
  keys.tagged("model", &ModelSection::model, model_types).required().doc("The network.");
}

}  // namespace

FieldLoss TrainingRun::make_loss() const {
  FieldLossOptions options;
  options.variable_weights = variable_weights;
  std::vector<double> rows = row_weights;
  for (std::int64_t i = 0; row_weights.empty() && i < space[0]; ++i) {
    rows.push_back(1.0 + 0.01 * static_cast<double>(i));
  }
  std::vector<std::string> names;
  for (std::int64_t c = 0; c < outputs; ++c) names.push_back(concat("v", c));
  return FieldLoss(options, rows, names);
}

TrainingRun::Result TrainingRun::run_rank(Communicator& world, const MeshSizes& sizes) const {
  Mesh mesh(world, sizes.data, sizes.domain, sizes.tensor);
  const Rank rank{world.context(), mesh};
  const ModelDescription description{space, inputs, outputs, time_channels};
  const auto built = build_model(parse<ModelSection>(Json{{"model", model}}).model, description);
  built->set_recompute(recompute);
  PlanBook plans(cost);
  const DType master = dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  plan_and_materialise(*built, rank, plans, samples, zero, master, dtype, 1);
  const std::vector<ParameterBlock*> blocks = built->parameters();
  for (ParameterBlock* block : blocks) {
    if (!initial.empty()) testing::load(rank.context, *block, initial);
  }
  Optimizer optimizer(rank, blocks, optimizer_options);
  const FieldLoss loss = make_loss();
  const auto field = [&](const Layout& layout, DType type, const std::string& name, int step) {
    return data ? testing::cut_piece(rank, layout, type, data(name, step))
                : made_up(rank, layout, type, name, step);
  };

  Result result;
  const Layout input = built->input_layout(mesh, samples), output = built->output_layout(mesh, samples);
  rank.context.arena().reset_peaks();
  for (int step = 1; step <= steps; ++step) {
    optimizer.zero_gradients();
    {
      Tape tape(rank, plans, Tape::Mode::kRecord, dtype, {1, {static_cast<std::uint64_t>(step), 0, 0}});
      tape.set_training(true);
      const Variable x({field(input, dtype, "x", step), input}, false);
      const Variable y = built->forward(tape, x);
      if (step == 1) result.outputs["output"] = whole_output(rank, y.value());
      const Array target = field(output, master, "y", step);
      const FieldSums sums = loss.sums(rank, y.value().piece, target, output);
      const WeightedMean global = loss.global_mean(rank, sums).read(rank.context);
      result.losses.push_back(global.value());
      y.slot()->add(
          rank, {loss.gradient(rank, sums, 1.0 / global.weight, y.value().piece, target, output), output});
      tape.backward();
    }
    result.norms.push_back(optimizer.finish_gradients(1.0));
    if (step == 1) {
      for (ParameterBlock* block : blocks) {
        for (auto& group : block->groups()) {
          testing::collect(group->owned_segments(), group->owned_gradient(), result.gradients);
        }
      }
    }
    optimizer.step(rate_factor(step), 1.0, result.norms.back());
  }
  for (ParameterBlock* block : blocks) {
    std::int64_t buffers = 0;
    for (auto& group : block->groups()) {
      testing::collect(group->owned_segments(), group->owned(), result.parameters);
      buffers += group->travels() ? 1 : 0;
    }
    result.buffers = std::max(result.buffers, buffers);
    for (const auto& parameter : block->parameters())
      result.pieces[parameter->name()] = {rank.box(parameter->compute_layout()).extent.count()};
  }
  result.exchanges = world.traffic().calls[static_cast<std::size_t>(Collective::kExchange)];
  result.parameter_bytes = {optimizer.parameter_bytes()};
  result.peak_activation_bytes = {rank.context.arena().peak_bytes(Purpose::kActivations)};
  return result;
}

TrainingRun::Result TrainingRun::run(const MeshSizes& mesh) const {
  Result all;
  std::mutex mutex;
  const Backend backend = dtype == DType::kFloat64 ? Backend::kReference : Backend::kCpu;
  all.parameter_bytes.resize(static_cast<std::size_t>(mesh.ranks()));
  all.peak_activation_bytes.resize(static_cast<std::size_t>(mesh.ranks()));
  testing::run_test_ranks(mesh.ranks(), {.time_limit_seconds = 300}, backend, [&](Communicator& world) {
    const Result mine = run_rank(world, mesh);
    const std::lock_guard lock(mutex);
    all.losses = mine.losses;
    all.exchanges = mine.exchanges;
    all.buffers = mine.buffers;
    all.norms = mine.norms;
    testing::merge(all.gradients, mine.gradients);
    testing::merge(all.parameters, mine.parameters);
    testing::merge(all.outputs, mine.outputs);
    const auto place = static_cast<std::size_t>(world.rank());
    for (const auto& [name, elements] : mine.pieces) {
      all.pieces[name].resize(static_cast<std::size_t>(mesh.ranks()));
      all.pieces[name][place] = elements[0];
    }
    all.parameter_bytes[place] = mine.parameter_bytes[0];
    all.peak_activation_bytes[place] = mine.peak_activation_bytes[0];
  });
  return all;
}

}  // namespace jigsaw
