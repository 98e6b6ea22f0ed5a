#include "benchmark_model.h"

#include <chrono>
#include <string>
#include <vector>

#include "array/host_view.h"
#include "optim/adamw.h"

namespace jigsaw {

namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Standard normal numbers, the same for every run.
Array noise(const Rank& rank, const Layout& layout) {
  Array array(rank.context, rank.box(layout).extent, DType::kFloat32, Purpose::kInput);
  const RandomStream random(1, RandomPurpose::kNoise, "benchmark");
  const HostView<float> elements(array);
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<float>(random.normal({}, i));
  return array;
}

}  // namespace

BenchmarkModel::BenchmarkModel(const Rank& rank, const ModelDescription& description,
                               const std::function<void(Model&)>& append, bool recompute,
                               const CostModel& cost, std::int64_t samples)
    : rank_(rank),
      model_(description),
      plans_(cost),
      loss_({}, std::vector<double>(static_cast<std::size_t>(description.space[0]), 1.0),
            std::vector<std::string>(static_cast<std::size_t>(description.output_channels), "v")) {
  append(model_);
  model_.finish();
  model_.set_recompute(recompute);
  plan_and_materialise(model_, rank_, plans_, samples, Zero::kNone, DType::kFloat32, DType::kFloat32, 1);
  AdamWOptions adamw;
  adamw.learning_rate = 1e-4;
  adamw.clip_norm = 0;
  optimizer_ = std::make_unique<Optimizer>(rank_, model_.parameters(), adamw);
  input_ = model_.input_layout(rank_.mesh, samples);
  output_ = model_.output_layout(rank_.mesh, samples);
  x_ = noise(rank_, input_);
  target_ = noise(rank_, output_);
}

double BenchmarkModel::step() {
  const double start = seconds_now();
  optimizer_->zero_gradients();
  Tape tape(rank_, plans_, Tape::Mode::kRecord);
  tape.set_training(true);
  tape.on_gradients([](ParameterBlock& block) { block.start_synchronise_gradients(); });
  {
    const Variable y = model_.forward(tape, Variable({x_, input_}, false));
    loss_.backward(rank_, y, target_, 1.0 / loss_.full_weight(output_.global[0]));
  }
  tape.backward();
  const double norm = optimizer_->finish_gradients(1.0);
  optimizer_->step(1.0, 1.0, norm);
  return seconds_now() - start;
}

}  // namespace jigsaw
