#include "layers/training_run.h"

#include <cmath>
#include <mutex>

#include "config/config.h"

namespace jigsaw {

namespace {

/// A smooth function of the global element plus noise: the same numbers on every mesh.
Array made_up(const Rank& rank, const Layout& layout, DType dtype, const char* name, int step) {
  const Box box = rank.box(layout);
  Array array(rank.context, box.extent, dtype);
  const RandomStream random(3, RandomPurpose::kNoise, name);
  visit(dtype, [&](auto zero) {
    using T = decltype(zero);
    for_each_global_index(layout.global, box, 0, box.extent.count(), [&](std::int64_t i, std::int64_t index) {
      const RandomPosition at{static_cast<std::uint64_t>(step), 0, 0};
      array.data<T>()[i] = static_cast<T>(random.normal(at, static_cast<std::uint64_t>(index)));
    });
  });
  return array;
}

void collect(const std::vector<Segment>& segments, const Array& flat,
             std::map<std::string, std::vector<double>>& into) {
  for (const Segment& segment : segments) {
    std::vector<double>& whole = into[segment.parameter->name()];
    whole.resize(static_cast<std::size_t>(segment.parameter->shape().count()), NAN);
    for_each_global_index(segment.parameter->shape(), segment.box, segment.first, segment.count,
                          [&](std::int64_t i, std::int64_t index) {
                            visit(flat.dtype(), [&](auto zero) {
                              whole[static_cast<std::size_t>(index)] =
                                  static_cast<double>(flat.data<decltype(zero)>()[segment.at + i]);
                            });
                          });
  }
}

struct ModelSection {
  Tagged model;
};
void declare(Keys<ModelSection>& keys) {
  keys.tagged("model", &ModelSection::model, model_types).required().doc("The network.");
}

}  // namespace

TrainingRun::Result TrainingRun::run_rank(Communicator& world, const MeshSizes& sizes) const {
  Mesh mesh(world, sizes.data, sizes.domain, sizes.tensor);
  const Rank rank{world.context(), mesh};
  const ModelDescription description{space, inputs, outputs};
  const auto built = build_model(parse<ModelSection>(Json{{"model", model}}).model, description);
  built->set_recompute(recompute);
  PlanBook plans;
  const DType master = dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  plan_and_materialise(*built, rank, plans, samples, zero, master, dtype, 1);
  AdamW optimizer(rank, built->parameters(), OptimizerOptions{});
  LossOptions loss_options;
  loss_options.variable_weights = variable_weights;
  std::vector<double> rows(static_cast<std::size_t>(space[0]));
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = 1.0 + 0.01 * static_cast<double>(i);
  std::vector<std::string> names;
  for (std::int64_t c = 0; c < outputs; ++c) names.push_back(concat("v", c));
  const FieldLoss loss(loss_options, rows, names);

  Result result;
  const Layout input = built->input_layout(mesh, samples), output = built->output_layout(mesh, samples);
  rank.context.arena().reset_peaks();
  for (int step = 1; step <= steps; ++step) {
    optimizer.zero_gradients();
    {
      Tape tape(rank, plans, Tape::Mode::kRecord, dtype, {1, {static_cast<std::uint64_t>(step), 0, 0}});
      tape.set_training(true);
      const Variable x({made_up(rank, input, dtype, "x", step), input}, false);
      const Variable y = built->forward(tape, x);
      const Array target = made_up(rank, output, master, "y", step);
      const GlobalSums sums = loss.sums(rank, loss.norm(), y.value().piece, target, output);
      result.losses.push_back(loss.value(sums));
      y.slot()->add(rank, {loss.gradient(rank, sums, 1.0, y.value().piece, target, output), output});
      tape.backward();
    }
    result.norms.push_back(optimizer.finish_gradients(1.0));
    if (step == 1) {
      for (ParameterBlock* block : built->parameters()) {
        for (auto& group : block->groups())
          collect(group->owned_segments(), group->owned_gradient(), result.gradients);
      }
    }
    optimizer.step(1.0, 1.0, result.norms.back());
  }
  for (ParameterBlock* block : built->parameters()) {
    for (auto& group : block->groups()) collect(group->owned_segments(), group->owned(), result.parameters);
  }
  result.parameter_bytes = {optimizer.parameter_bytes()};
  result.peak_activation_bytes = {rank.context.arena().peak_bytes(Purpose::kActivations)};
  return result;
}

TrainingRun::Result TrainingRun::run(const MeshSizes& mesh) const {
  Result all;
  std::mutex mutex;
  const auto merge = [](std::map<std::string, std::vector<double>>& into,
                        const std::map<std::string, std::vector<double>>& from) {
    for (const auto& [name, values] : from) {
      std::vector<double>& whole = into[name];
      whole.resize(values.size(), NAN);
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (!std::isnan(values[i])) whole[i] = values[i];
      }
    }
  };
  const Backend backend = dtype == DType::kFloat64 ? Backend::kReference : Backend::kCpu;
  all.parameter_bytes.resize(static_cast<std::size_t>(mesh.ranks()));
  all.peak_activation_bytes.resize(static_cast<std::size_t>(mesh.ranks()));
  run_ranks(
      mesh.ranks(), {}, [&](int) { return Context::make_host(backend, 1); },
      [&](Communicator& world) {
        const Result mine = run_rank(world, mesh);
        const std::lock_guard lock(mutex);
        all.losses = mine.losses;
        all.norms = mine.norms;
        merge(all.gradients, mine.gradients);
        merge(all.parameters, mine.parameters);
        all.parameter_bytes[static_cast<std::size_t>(world.rank())] = mine.parameter_bytes[0];
        all.peak_activation_bytes[static_cast<std::size_t>(world.rank())] = mine.peak_activation_bytes[0];
      });
  return all;
}

}  // namespace jigsaw
