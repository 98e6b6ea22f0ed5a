#include "train/training_step.h"

#include <cmath>
#include <limits>

#include "array/current_work.h"
#include "array/transfer.h"
#include "autograd/operation_span.h"
#include "base/trace.h"
#include "comm/agreement.h"
#include "optim/registry.h"

namespace jigsaw::inline train {

namespace {

/// What a step computes that the host decides by.
struct Found {
  WeightedMean loss;
  double squares = 0;  ///< gradient_squares()
};

/// The one place of a step where the host waits for results.
Found read(const Context& context, const MeanArray& loss, const Array& squares) {
  Array numbers(context, {MeanParts::kKinds + 1}, DType::kFloat64, Purpose::kWorkspace);
  copy_elements(context, loss.parts, 0, numbers, 0, MeanParts::kKinds);
  copy_elements(context, squares, 0, numbers, MeanParts::kKinds, 1);
  const std::vector<double> values = download_values(context, numbers);
  return {{values[MeanParts::kSum], values[MeanParts::kWeight], values[MeanParts::kEmpty]},
          values[MeanParts::kKinds]};
}

}  // namespace

TrainingStep::TrainingStep(OpenedRun& run, Optimizer& optimizer, std::int64_t steps)
    : run_(run),
      config_(run.configuration()),
      optimizer_(optimizer),
      steps_(steps),
      schedule_(make_schedule(config_.schedule, optimizer.options().learning_rate)),
      batches_(run.placed().rank().context) {}

MeanArray TrainingStep::run_part(std::int64_t step, std::int64_t part, const Batch& batch, double scale) {
  PlacedModel& placed = run_.placed();
  const std::int64_t samples = placed.samples();
  RandomState random{static_cast<std::uint64_t>(config_.seed),
                     {static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(part * samples), 0}};
  Tape tape(placed.rank(), placed.plans(), Tape::Mode::kRecord, placed.types().compute, random);
  tape.set_training(true);
  const int leads = batch.rollout;
  const bool last_only = config_.train.rollout_gradient == RolloutGradient::kLast;
  Tape earlier(placed.rank(), placed.plans(), Tape::Mode::kForward, placed.types().compute, random);
  earlier.set_training(true);
  double weights = 0;
  for (int r = 0; r < leads; ++r) weights += config_.train.lead_weight(r, leads);
  Context& context = placed.rank().context;
  MeanArray loss = MeanArray::none(context);
  const auto add_lead = [&](int r, const Variable& prediction) {
    if (last_only && r + 1 < leads) return;
    const OperationSpan of_loss(context, "loss", "(loss)");
    const Array& target = batch.target(r);
    const double share = config_.train.lead_weight(r, leads) / weights;
    loss.add(context, run_.loss().backward(placed.rank(), prediction, target, share * scale), share);
  };
  {
    const TraceSpan span(TraceKind::kPhase, "forward");
    placed.forecaster().run(tape, batch, samples, add_lead, last_only ? &earlier : nullptr);
  }
  const TraceSpan span(TraceKind::kPhase, "backward");
  if (part + 1 == config_.train.accumulate)
    tape.on_gradients([](ParameterBlock& block) { block.start_synchronise_gradients(); });
  tape.backward();
  return loss;
}

StepResult TrainingStep::run(std::int64_t step, Prefetch& parts) {
  const double waited = parts.seconds_waited();
  StepResult result = run(
      step, [&] { return parts.next(); }, [&] { return parts.next_if_there(); });
  result.data_wait = parts.seconds_waited() - waited;
  return result;
}

StepResult TrainingStep::run(std::int64_t step, const std::function<Batch()>& next_part) {
  return run(step, next_part, [] { return std::nullopt; });
}

StepResult TrainingStep::run(std::int64_t step, const std::function<Batch()>& next_part,
                             const std::function<std::optional<Batch>()>& ready_part) {
  Context& context = run_.placed().rank().context;
  const CurrentStep current(context, step);
  optimizer_.zero_gradients();
  std::int64_t forwards = 0;
  MeanArray total = MeanArray::none(context);
  // Of the mean over the whole batch the weight is known at its end, for what has no valid point has none.
  // Until then gradients are divided by what it would be if nothing were missing.
  const double full = run_.loss().full_weight(config_.train.batch_size);
  for (std::int64_t part = 0; part < config_.train.accumulate; ++part) {
    const Batch* batch = nullptr;
    together(run_.world(), [&] { batch = &batches_.take(next_part); });
    total.add(context, run_part(step, part, *batch, 1.0 / full));
    const bool last_only = config_.train.rollout_gradient == RolloutGradient::kLast;
    forwards += last_only ? 1 : batch->rollout;
    batches_.go_ahead(ready_part);
  }
  const OperationSpan span(context, "update", "(update)");
  const auto [loss, squares] = read(context, total, optimizer_.finish_gradients());
  StepResult result;
  result.empty = !(loss.weight > 0);
  result.empty_targets = static_cast<std::int64_t>(loss.empty);
  result.loss = result.empty ? std::numeric_limits<double>::quiet_NaN() : loss.value();
  const double scale = result.empty ? 0.0 : full / loss.weight;
  result.norm = gradient_norm(squares, scale);
  const double factor = schedule_->factor(step, steps_);
  result.rate = factor * optimizer_.options().learning_rate;
  result.finite = std::isfinite(result.loss) && std::isfinite(result.norm);
  before_update_();
  if (result.finite) optimizer_.step(factor, scale, result.norm, forwards);
  return result;
}

}  // namespace jigsaw::inline train
