#include "train/training_step.h"

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "array/current_work.h"
#include "array/transfer.h"
#include "autograd/operation_span.h"
#include "base/error.h"
#include "base/text.h"
#include "base/trace.h"
#include "comm/agreement.h"
#include "optim/registry.h"

namespace jigsaw::inline train {

TrainingStep::TrainingStep(OpenedRun& run, Optimizer& optimizer, std::int64_t steps)
    : run_(run),
      config_(run.configuration()),
      optimizer_(optimizer),
      steps_(steps),
      schedule_(make_schedule(config_.schedule, optimizer.options().learning_rate)),
      batches_(run.placed().rank().context),
      recorded_(run.placed().rank().context, run.world(), config_.train.graphs),
      full_weight_(run.loss().full_weight(config_.train.batch_size)) {}

MeanArray TrainingStep::run_part(std::int64_t step, std::int64_t part, const Batch& batch, double scale) {
  PlacedModel& placed = run_.placed();
  const std::int64_t samples = placed.samples();
  RandomState random{
      static_cast<std::uint64_t>(config_.seed),
      {static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(part * placed.forecasts()), 0}};
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
  const auto add_lead = [&](int r, const Variable& prediction, const RolloutState& state) {
    if (last_only && r + 1 < leads) return true;
    const OperationSpan of_loss(context, "loss", "(loss)");
    const Array& target = batch.target(r);
    const double share = config_.train.lead_weight(r, leads) / weights;
    loss.add(context,
             placed.supervision().backward(placed.rank(), placed.plans(), {prediction, state.sides}, target,
                                           share * scale),
             share);
    return true;
  };
  {
    const TraceSpan span(TraceKind::kPhase, "forward");
    placed.forecaster().run(tape, batch, samples, 0, {}, add_lead, last_only ? &earlier : nullptr);
  }
  const TraceSpan span(TraceKind::kPhase, "backward");
  if (part + 1 == config_.train.accumulate)
    tape.on_gradients([](ParameterBlock& block) { block.start_synchronise_gradients(); });
  tape.backward();
  return loss;
}

void TrainingStep::begin(std::int64_t step, Prefetch& parts) {
  const double waited = parts.seconds_waited();
  begin(
      step, [&] { return parts.next(); }, [&] { return parts.next_if_there(); });
  begun_.back().result.data_wait = parts.seconds_waited() - waited;
}

StepResult TrainingStep::run(std::int64_t step, Prefetch& parts) {
  begin(step, parts);
  return finish();
}

StepResult TrainingStep::run(std::int64_t step, const std::function<Batch()>& next_part) {
  begin(step, next_part, {});
  return finish();
}

void TrainingStep::begin(std::int64_t step, const std::function<Batch()>& next_part,
                         const std::function<std::optional<Batch>()>& ready_part) {
  require(std::ssize(begun_) < kMostBegun, "a step begins before the last but one is finished");
  Context& context = run_.placed().rank().context;
  const CurrentStep current(context, step);
  optimizer_.zero_gradients();
  std::int64_t forwards = 0;
  run_parts(step, next_part, ready_part, forwards);
  const OperationSpan span(context, "update", "(update)");
  before_update_();
  const double factor = schedule_->factor(step, steps_);
  optimizer_.set_rate_factor(factor);
  recorded_.piece("the update", [&] {
    const Array squares = optimizer_.finish_gradients();
    optimizer_.step(full_weight_, total_.parts, squares, forwards);
  });
  total_ = {};
  recorded_.end();
  begun_.push_back(fetch(optimizer_.numbers()));
  begun_.back().first = first_instant_;
  begun_.back().result.rate = factor * optimizer_.options().learning_rate;
  begun_.back().result.recorded = recorded_.recorded();
  begun_.back().result.leads = leads_;
}

void TrainingStep::run_parts(std::int64_t step, const std::function<Batch()>& next_part,
                             const std::function<std::optional<Batch>()>& ready_part,
                             std::int64_t& forwards) {
  Context& context = run_.placed().rank().context;
  const bool last_only = config_.train.rollout_gradient == RolloutGradient::kLast;
  for (std::int64_t part = 0; part < config_.train.accumulate; ++part) {
    const Batch* batch = nullptr;
    together(run_.world(), [&] { batch = &batches_.take(next_part); });
    if (part == 0) recorded_.begin(step, *batch, !ready_part);
    if (part == 0 && context.runtime() != nullptr) first_instant_ = context.runtime()->instant();
    const Batch& input = recorded_.input(*batch);
    const auto work = [&] {
      if (part == 0) total_ = MeanArray::none(context);
      // Of the mean over the whole batch the weight is known at its end, for what has no valid point has
      // none. Until then gradients are divided by what it would be if nothing were missing.
      total_.add(context, run_part(step, part, input, 1.0 / full_weight_));
    };
    const std::string what = concat("part ", part + 1, " of the batch");
    if (part == 0) {
      recorded_.first_piece(what, work, [&] { forget_part(); });
    } else {
      recorded_.piece(what, work);
    }
    leads_ = batch->rollout;
    forwards += last_only ? 1 : batch->rollout;
    batches_.go_ahead(ready_part ? ready_part : [] { return std::optional<Batch>(); });
  }
}

/// The first one of a step.
void TrainingStep::forget_part() {
  for (ParameterBlock* const block : run_.placed().model().parameters()) block->forget_pass();
}

/// Has the numbers come to the host, which does not wait for them.
TrainingStep::Begun TrainingStep::fetch(const Array& numbers) const {
  const Context& context = run_.placed().rank().context;
  DeviceRuntime* const runtime = context.runtime();
  Begun begun;
  if (runtime == nullptr) {
    begun.numbers = Array(context, numbers.shape(), numbers.dtype(), Purpose::kWorkspace);
    copy_elements(context, numbers, 0, begun.numbers, 0, numbers.count());
    return begun;
  }
  const Context pinned(context.host().backend(), runtime->page_locked(), 1);
  begun.numbers = Array(pinned, numbers.shape(), numbers.dtype(), Purpose::kWorkspace);
  start_download_into(context, numbers, begun.numbers);
  begun.last = runtime->instant();
  begun.come = runtime->ticket(Stream::kCompute);
  return begun;
}

StepResult TrainingStep::finish() {
  require(!begun_.empty(), "no step has begun");
  const Begun begun = std::move(begun_.front());
  begun_.pop_front();
  const Context& context = run_.placed().rank().context;
  DeviceRuntime* const runtime = context.runtime();
  if (runtime != nullptr) runtime->synchronise(begun.come);
  run_.world().check();
  const std::vector<double> numbers = download_values(context.host(), begun.numbers);
  StepResult result = begun.result;
  if (runtime != nullptr) result.device_seconds = runtime->seconds_between(begun.first, begun.last);
  const double sum = numbers[UpdateNumbers::kSum], weight = numbers[UpdateNumbers::kWeight];
  result.empty = !(weight > 0);
  result.empty_targets = std::llround(numbers[UpdateNumbers::kEmpty]);
  result.loss = result.empty ? std::numeric_limits<double>::quiet_NaN() : sum / weight;
  result.norm = gradient_norm(numbers[UpdateNumbers::kSquares], result.empty ? 0.0 : full_weight_ / weight);
  result.finite = numbers[UpdateNumbers::kApplies] != 0;
  optimizer_.count(result.finite);
  return result;
}

}  // namespace jigsaw::inline train
