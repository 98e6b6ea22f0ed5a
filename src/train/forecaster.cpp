#include "train/forecaster.h"

#include <algorithm>

#include "array/transfer.h"
#include "base/error.h"
#include "base/text.h"
#include "kernels/pointwise.h"

namespace jigsaw::inline train {

namespace {

/// Number of the channel of this field at this hour, or -1.
std::int64_t find_channel(const std::vector<Channel>& channels, const Field& field, int hours) {
  const auto found = std::find_if(channels.begin(), channels.end(), [&](const Channel& channel) {
    return channel.role == Role::kPrognostic && channel.field == field && channel.hours == hours;
  });
  return found == channels.end() ? -1 : found - channels.begin();
}

std::int64_t find_target(const std::vector<Channel>& targets, const Field& field) {
  const auto found = std::find_if(targets.begin(), targets.end(),
                                  [&](const Channel& channel) { return channel.field == field; });
  require(found != targets.end(), "a prognostic input is no target");
  return found - targets.begin();
}

}  // namespace

Forecaster::Forecaster(const Model& model, const Channels& channels, const Statistics& statistics,
                       Predict predict, int lead_hours, int rollout)
    : model_(model), predict_(predict), rollout_(rollout) {
  for (std::size_t t = 0; t < channels.targets.size(); ++t) {
    const auto target = static_cast<std::int64_t>(t);
    const bool accumulates = predict == Predict::kIncrement && channels.targets[t].role == Role::kPrognostic;
    all_accumulate_ = all_accumulate_ && accumulates;
    if (accumulates) carry_.push_back({target, target, 1.0});
  }
  if (rollout == 1) return;
  for (std::size_t i = 0; i < channels.inputs.size(); ++i) {
    const Channel& input = channels.inputs[i];
    const auto row = static_cast<std::int64_t>(i);
    if (input.role == Role::kStatic) old_to_new_.push_back({row, row, 1.0});
    if (input.role != Role::kPrognostic) continue;
    if (input.hours == 0) {
      const FieldStatistics& field = statistics.of(input.field);
      const bool increment = predict == Predict::kIncrement;
      if (increment) old_to_new_.push_back({row, row, 1.0});
      prediction_to_new_.push_back({row, find_target(channels.targets, input.field),
                                    increment ? field.increment_deviation / field.deviation : 1.0});
      continue;
    }
    const std::int64_t from = find_channel(channels.inputs, input.field, input.hours + lead_hours);
    if (from < 0) {
      throw ConfigError(concat(
          "a rollout of more than 1 step needs data.input_hours that follow each other by data.lead_hours, ",
          lead_hours, ": the input at ", input.hours, " h is not known ", lead_hours, " h later"));
    }
    old_to_new_.push_back({row, from, 1.0});
  }
}

Forecaster::Maps Forecaster::make_maps(Context& context, DType dtype) const {
  const std::int64_t inputs = model_.description().input_channels,
                     outputs = model_.description().output_channels;
  const auto fill = [&](const std::vector<Entry>& entries, std::int64_t rows, std::int64_t columns) {
    std::vector<double> matrix(static_cast<std::size_t>(rows * columns), 0.0);
    for (const Entry& e : entries) matrix[static_cast<std::size_t>(e.row * columns + e.column)] = e.value;
    return constant(context, {rows, columns}, dtype, matrix);
  };
  return {fill(old_to_new_, inputs, inputs), fill(prediction_to_new_, inputs, outputs),
          fill(carry_, outputs, outputs)};
}

namespace {

/// A matrix that every rank holds whole.
Variable as_variable(const Array& matrix) {
  return Variable({matrix, {matrix.shape(), {}}}, false);
}

}  // namespace

Variable Forecaster::advance(Tape& tape, const Maps& maps, const Step& step) const {
  const BlockSpec spec{kBlocks[0], nullptr, false, model_.input_units()};
  const std::vector<Variable> operands = {step.input, step.prediction, step.forcing, step.present};
  return tape.block(spec, operands, [&](Tape& on, const std::vector<Variable>& x) {
    const int space = x[0].shape().rank() - 2;
    const std::string in = field_letters(space, 'k'), out = field_letters(space, 'n');
    const Variable kept = contract(on, in + ",nk->" + out, x[0], as_variable(maps.old_to_new));
    const Variable predicted = contract(on, in + ",nk->" + out, x[1], as_variable(maps.prediction_to_new));
    return add_residual(on, add_residual(on, multiply(on, out, predicted, x[3]), kept), x[2]);
  });
}

Variable Forecaster::total(Tape& tape, const Maps& maps, const Variable& before,
                           const Variable& prediction) const {
  if (predict_ == Predict::kState) return prediction;
  const BlockSpec spec{kBlocks[1], nullptr, false, model_.output_units()};
  return tape.block(spec, {before, prediction}, [&](Tape& on, const std::vector<Variable>& x) {
    if (all_accumulate_) return add_residual(on, x[0], x[1]);
    const int space = x[0].shape().rank() - 2;
    const std::string in = field_letters(space, 'k'), out = field_letters(space, 'n');
    return add_residual(on, contract(on, in + ",nk->" + out, x[0], as_variable(maps.carry)), x[1]);
  });
}

void Forecaster::plan(const Rank& rank, PlanBook& plans, std::int64_t samples) const {
  if (rollout_ == 1) return;
  Tape trace(rank, plans, Tape::Mode::kTrace);
  const Maps maps = make_maps(rank.context, DType::kFloat32);
  const Variable input = Variable::traced(model_.input_layout(rank.mesh, samples), -1);
  const Variable output = Variable::traced(model_.output_layout(rank.mesh, samples), -1);
  advance(trace, maps, {input, output, input, input});
  total(trace, maps, output, output);
}

void Forecaster::run(Tape& tape, const Batch& batch, std::int64_t samples,
                     const std::function<void(int, const Variable&)>& use) const {
  const Layout layout = model_.input_layout(tape.rank().mesh, samples);
  const auto leads = static_cast<int>(batch.targets.size());
  const auto given = [&](const Array& array) {
    return Variable({cast(tape.context(), array, tape.dtype()), layout}, false);
  };
  Maps maps;
  Variable present;
  if (leads > 1) {
    maps = make_maps(tape.context(), tape.dtype());
    present = given(batch.present);
  }
  Variable input = given(batch.input);
  Variable sum;
  for (int r = 0; r < leads; ++r) {
    tape.random().position.rollout = static_cast<std::uint64_t>(r);
    const Variable prediction = model_.forward(tape, input);
    sum = r == 0 ? prediction : total(tape, maps, sum, prediction);
    use(r, sum);
    if (r + 1 == leads) break;
    input =
        advance(tape, maps, {input, prediction, given(batch.forcings[static_cast<std::size_t>(r)]), present});
  }
}

}  // namespace jigsaw::inline train
