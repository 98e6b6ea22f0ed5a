#include "task/forecaster.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "array/transfer.h"
#include "base/error.h"
#include "base/text.h"
#include "kernels/pointwise.h"

namespace jigsaw::inline task {

namespace {

constexpr int kMostNoisyLeads = (1 << 16) - 1;  // of RandomPosition::rollout
/// How many times as far beyond an end as it was before lies what is left beyond it: roundings are about as
/// large as the least excess that shows, or smaller. A power of two, exact in every type.
constexpr double kFarBeyond = 0x1p40;

/// Number of the channel of this field at this hour, or -1.
std::int64_t find_channel(const std::vector<Channel>& channels, const Field& field, Time offset) {
  const auto found = std::find_if(channels.begin(), channels.end(), [&](const Channel& channel) {
    return channel.role == Role::kPrognostic && channel.field == field && channel.offset == offset;
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
                       const Configuration& configuration, int rollout)
    : model_(model),
      predict_(configuration.data.predict),
      ensemble_(configuration.ensemble),
      seed_(static_cast<std::uint64_t>(configuration.seed)),
      forced_(given_at_leads(channels, configuration.data.boundary_width > 0)),
      rollout_(rollout) {
  const Predict predict = predict_;
  const DataOptions& data = configuration.data;
  const Time lead_time = data.lead();
  const bool in_steps = data.of_sequences();
  const auto text = [&](Time time) { return in_steps ? counted(time, "step") : duration_text(time); };
  for (std::size_t t = 0; t < channels.targets.size(); ++t) {
    const auto target = static_cast<std::int64_t>(t);
    const bool accumulates = predict == Predict::kIncrement && channels.targets[t].role == Role::kPrognostic;
    all_accumulate_ = all_accumulate_ && accumulates;
    if (accumulates) carry_.push_back({target, target, 1.0});
  }
  add_ranges(channels, statistics);
  if (ensemble_.noise_channels() > 0 && rollout > kMostNoisyLeads)
    throw ConfigError(
        concat("a model that is given noise runs ", kMostNoisyLeads, " leads at most, not ", rollout));
  if (rollout == 1) return;
  if (configuration.data.of_same_time()) {
    throw ConfigError(
        "data.lead_hours is 0: targets are of the time of the inputs, and one step (train.rollout, "
        "validation.rollout, --steps, --leads) is all there is");
  }
  for (std::size_t i = 0; i < channels.inputs.size(); ++i) {
    const Channel& input = channels.inputs[i];
    const auto row = static_cast<std::int64_t>(i);
    if (input.role == Role::kStatic) old_to_new_.push_back({row, row, 1.0});
    if (input.role != Role::kPrognostic) continue;
    if (input.offset == 0) {
      const FieldStatistics& field = statistics.of(input.field);
      const bool increment = predict == Predict::kIncrement;
      if (increment) old_to_new_.push_back({row, row, 1.0});
      prediction_to_new_.push_back({row, find_target(channels.targets, input.field),
                                    increment ? field.increment_deviation / field.deviation : 1.0});
      continue;
    }
    const std::int64_t from = find_channel(channels.inputs, input.field, input.offset + lead_time);
    if (from < 0) {
      throw ConfigError(
          concat("a rollout of more than 1 step needs ", in_steps ? "data.input_steps" : "data.input_hours",
                 " that follow each other by ", in_steps ? "data.lead_steps" : "data.lead_hours", ", ",
                 text(lead_time), ": the input at ", text(input.offset), " is not known ", text(lead_time),
                 " later"));
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
    return kept_constant(context, {rows, columns}, dtype, matrix);
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
  std::vector<Variable> operands = {step.input, step.prediction};
  const bool forced = step.forcing.defined();
  if (forced) operands.push_back(step.forcing);
  operands.push_back(step.present);
  return tape.block(spec, operands, [&](Tape& on, const std::vector<Variable>& x) {
    const int space = x[0].shape().rank() - 2;
    const std::string in = field_letters(space, 'k'), out = field_letters(space, 'n');
    const Variable kept = contract(on, in + ",nk->" + out, x[0], as_variable(maps.old_to_new));
    const Variable predicted = contract(on, in + ",nk->" + out, x[1], as_variable(maps.prediction_to_new));
    const Variable next = multiply(on, out, add_residual(on, predicted, kept), x.back());
    return forced ? add_residual(on, next, x[2]) : next;
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

/// In the units of the model's output; targets without one never exceed it.
Forecaster::Bound Forecaster::make_bound(const Channels& channels, const Statistics& statistics,
                                         bool low) const {
  Bound bound{low, {}, {}};
  for (const Channel& target : channels.targets) {
    const double end = low ? target.range.low : target.range.high;
    const bool has = std::isfinite(end);
    bound.on.push_back(has ? 1.0 : 0.0);
    bound.excess.push_back(0.0);
    if (!has) continue;  // labels, which have no statistics, among them
    const FieldStatistics& field = statistics.of(target.field);
    const bool increment = predict_ == Predict::kIncrement && target.role == Role::kPrognostic;
    const double normalised = (target.transform.forward(end) - field.mean) /
                              (increment ? field.increment_deviation : field.deviation);
    bound.excess.back() = low ? normalised : -normalised;
  }
  return bound;
}

void Forecaster::add_ranges(const Channels& channels, const Statistics& statistics) {
  for (const bool low : {true, false}) {
    const Bound bound = make_bound(channels, statistics, low);
    if (std::any_of(bound.on.begin(), bound.on.end(), [](double on) { return on > 0; }))
      bounds_.push_back(bound);
  }
  if (bounds_.empty() || predict_ != Predict::kIncrement) return;
  for (std::size_t t = 0; t < channels.targets.size(); ++t) {
    const Channel& target = channels.targets[t];
    if (target.role != Role::kPrognostic || !target.range.bounded()) continue;
    const FieldStatistics& field = statistics.of(target.field);
    state_in_input_.push_back({static_cast<std::int64_t>(t), find_channel(channels.inputs, target.field, 0),
                               field.deviation / field.increment_deviation});
  }
}

/// max(0, sign·s + bias), with sign −1 of low ends; `back` gives it the opposite sign, or leads further away.
std::vector<Forecaster::BoundArrays> Forecaster::make_bounds(Context& context, DType dtype,
                                                             Clamped clamped) const {
  const double times = clamped == Clamped::kAtEnd ? -1 : kFarBeyond;
  const std::int64_t inputs = model_.description().input_channels,
                     outputs = model_.description().output_channels;
  std::vector<BoundArrays> arrays;
  for (const Bound& bound : bounds_) {
    const double sign = bound.low ? -1 : 1;
    std::vector<double> diagonal(static_cast<std::size_t>(outputs * outputs), 0.0), back = diagonal;
    for (std::int64_t c = 0; c < outputs; ++c) {
      const double on = bound.on[static_cast<std::size_t>(c)];
      diagonal[static_cast<std::size_t>(c * outputs + c)] = sign * on;
      back[static_cast<std::size_t>(c * outputs + c)] = times * sign * on;
    }
    BoundArrays one{{},
                    kept_constant(context, {outputs, outputs}, dtype, diagonal),
                    kept_constant(context, {outputs}, dtype, bound.excess),
                    kept_constant(context, {outputs, outputs}, dtype, back)};
    if (!state_in_input_.empty()) {
      std::vector<double> from(static_cast<std::size_t>(outputs * inputs), 0.0);
      for (const Entry& e : state_in_input_) {
        from[static_cast<std::size_t>(e.row * inputs + e.column)] =
            sign * bound.on[static_cast<std::size_t>(e.row)] * e.value;
      }
      one.from_input = kept_constant(context, {outputs, inputs}, dtype, from);
    }
    arrays.push_back(one);
  }
  return arrays;
}

Variable Forecaster::clamp(Tape& tape, const std::vector<BoundArrays>& bounds, const Variable& input,
                           const Variable& prediction) const {
  const BlockSpec spec{kBlocks[2], nullptr, false, model_.output_units()};
  return tape.block(spec, {input, prediction}, [&](Tape& on, const std::vector<Variable>& x) {
    const int space = x[0].shape().rank() - 2;
    const std::string in = field_letters(space, 'k'), out = field_letters(space, 'n');
    Variable result = x[1];
    for (const BoundArrays& bound : bounds) {
      Variable excess = contract(on, in + ",nk->" + out, x[1], as_variable(bound.from_prediction));
      if (bound.from_input.defined()) {
        excess =
            add_residual(on, excess, contract(on, in + ",nk->" + out, x[0], as_variable(bound.from_input)));
      }
      Pointwise relu{out, as_variable(bound.bias), "n"};
      relu.activation = Activation::kRelu;
      excess = pointwise(on, excess, relu);
      result = add_residual(on, result, contract(on, in + ",nk->" + out, excess, as_variable(bound.back)));
    }
    return result;
  });
}

void Forecaster::plan(const Rank& rank, PlanBook& plans, std::int64_t samples) const {
  Tape trace(rank, plans, Tape::Mode::kTrace);
  const std::int64_t forecasts = samples * members();
  const Variable input = Variable::traced(model_.input_layout(rank.mesh, forecasts), -1);
  const Variable output = Variable::traced(model_.output_layout(rank.mesh, forecasts), -1);
  if (!bounds_.empty())
    clamp(trace, make_bounds(rank.context, DType::kFloat32, Clamped::kAtEnd), input, output);
  if (rollout_ == 1) return;
  const Maps maps = make_maps(rank.context, DType::kFloat32);
  const bool given = forced_ || ensemble_.noise_channels() > 0;
  advance(trace, maps, {input, output, given ? input : Variable(), input});
  total(trace, maps, output, output);
}

MemberBox Forecaster::member_box(const Mesh& mesh, std::int64_t samples) const {
  const Layout layout = model_.input_layout(mesh, samples * members());
  return {layout.global, layout.box(mesh.shape(), mesh.coordinates()), members()};
}

Box Forecaster::data_box(const Mesh& mesh, std::int64_t samples) const {
  const MemberBox of = member_box(mesh, samples);
  Box box = of.box;
  const int last = box.extent.rank() - 1;
  const std::int64_t channels = of.whole[last] - ensemble_.noise_channels();
  box.begin[0] = of.first_sample();
  box.extent[0] = of.samples();
  box.begin[last] = std::min(box.begin[last], channels);
  box.extent[last] = of.channels_below(channels);
  return box;
}

MemberNoise Forecaster::noise_of(Tape& tape, const Batch& batch, const MemberBox& of, int lead) const {
  MemberNoise noise{
      {seed_, RandomPurpose::kNoise, tape.training() ? "members of samples" : "members of forecasts"},
      ensemble_.local_noise,
      ensemble_.global_noise,
      {}};
  if (noise.channels() == 0) return noise;
  for (std::int64_t sample = of.first_sample(); sample < of.first_sample() + of.samples(); ++sample) {
    RandomPosition position{0, 0, static_cast<std::uint64_t>(lead)};
    if (tape.training()) {
      position.step = tape.random().position.step;
      position.sample = tape.random().position.sample + static_cast<std::uint64_t>(sample * members());
    } else {
      // By the minute, and starts within one by their seconds.
      constexpr int kMinuteBits = 26;  // of a century from 1970 on
      const Time start = batch.times.at(static_cast<std::size_t>(sample));
      position.step = static_cast<std::uint32_t>(start / kMinute) ^
                      static_cast<std::uint32_t>(start % kMinute) << kMinuteBits;
    }
    noise.positions.push_back(position);
  }
  return noise;
}

void Forecaster::run(Tape& tape, const Batch& batch, std::int64_t samples,
                     const std::function<void(int, const Variable&)>& use, Tape* earlier,
                     Clamped clamped) const {
  const auto use_predicted = [&](int lead, const Variable& predicted, const RolloutState& /*state*/) {
    use(lead, predicted);
    return true;
  };
  run(tape, batch, samples, 0, {}, use_predicted, earlier, clamped);
}

void Forecaster::run(Tape& tape, const Batch& batch, std::int64_t samples, int first, RolloutState state,
                     const UseState& use, Tape* earlier, Clamped clamped) const {
  const Mesh& mesh = tape.rank().mesh;
  const Layout layout = model_.input_layout(mesh, samples * members());
  const int leads = batch.rollout;
  const MemberBox of = member_box(mesh, samples);
  const bool noisy = ensemble_.noise_channels() > 0;
  const DType dtype = batch.input.dtype();
  /// Of every member; an array that is not defined is zero.
  const auto given = [&](const Array& array, const MemberNoise& noise) {
    const bool as_it_is = members() == 1 && !noisy;
    const Array inputs = as_it_is ? array : member_inputs(tape.context(), array, dtype, of, noise);
    return Variable({cast(tape.context(), inputs, tape.dtype()), layout}, false);
  };
  Maps maps;
  Variable present;
  if (leads > 1) {
    maps = make_maps(tape.context(), tape.dtype());
    MemberNoise none = noise_of(tape, batch, of, 0);
    none.positions.clear();
    present = given(batch.present, none);
  }
  const std::vector<BoundArrays> bounds = make_bounds(tape.context(), tape.dtype(), Clamped::kAtEnd);
  std::vector<BoundArrays> marks;
  if (clamped == Clamped::kFarBeyond) marks = make_bounds(tape.context(), tape.dtype(), clamped);
  for (int r = first; r < leads; ++r) {
    Tape& on = earlier != nullptr && r + 1 < leads ? *earlier : tape;
    if (r == 0) {
      state.input = given(batch.input, noise_of(tape, batch, of, 0));
    } else {
      // On the tape of the lead before.
      Tape& before = earlier != nullptr ? *earlier : tape;
      Variable forcing;
      if (forced_ || noisy)
        forcing = given(forced_ ? batch.forcing(r - 1) : Array(), noise_of(tape, batch, of, r));
      state.input = advance(before, maps, {state.input, state.prediction, forcing, present});
      state.prediction = Variable();  // whose memory the model may have
    }
    on.random().position.rollout = static_cast<std::uint64_t>(r);
    state.prediction = model_.forward(on, state.input, on.training() ? &state.sides : nullptr);
    const auto since_start = [&](const Variable& one) {
      return r == 0 ? one : total(on, maps, state.sum, one);
    };
    Variable marked;
    if (!marks.empty()) marked = since_start(clamp(on, marks, state.input, state.prediction));
    if (!bounds.empty()) state.prediction = clamp(on, bounds, state.input, state.prediction);
    state.sum = since_start(state.prediction);
    if (!use(r, marked.defined() ? marked : state.sum, state)) return;
  }
}

std::vector<int> Forecaster::carried_inputs() const {
  std::set<int> channels;
  for (const Entry& entry : old_to_new_) channels.insert(static_cast<int>(entry.column));
  return {channels.begin(), channels.end()};
}

}  // namespace jigsaw::inline task
