#include "task/physical_states.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "task/ensemble.h"

namespace jigsaw::inline task {

namespace {

ValueFunction function_of(TransformKind kind) {
  switch (kind) {
    case TransformKind::kLog:
      return ValueFunction::kLog;
    case TransformKind::kSqrt:
      return ValueFunction::kSqrt;
    case TransformKind::kBoxCox:
      return ValueFunction::kBoxCox;
    case TransformKind::kStandard:
    case TransformKind::kMinMax:
    case TransformKind::kNone:
      break;
  }
  return ValueFunction::kNone;
}

/// The range of a channel's states less a few roundings, of normalised or of packed numbers; a state that a
/// transform gives is never below 0.
StateChannel alike_of(const StateChannel& state, const FieldStatistics& field, const Transform& transform) {
  const double size = transform.linear() ? std::abs(field.mean) + field.deviation
                                         : transform.inverse(field.mean + field.deviation);
  const double few = 0x1p-20 * size, least = transform.linear() ? state.low : std::max(state.low, 0.0);
  StateChannel alike;
  alike.low = least + few;
  alike.high = state.high - few;
  return alike;
}

}  // namespace

PhysicalStates::PhysicalStates(const Channels& channels, const Statistics& statistics, Predict predict) {
  for (const Channel& target : channels.targets) {
    const FieldStatistics& field = statistics.of(target.field);
    StateChannel state;
    state.increment = predict == Predict::kIncrement && target.role == Role::kPrognostic;
    state.mean = field.mean;
    state.deviation = state.increment ? field.increment_deviation : field.deviation;
    state.function = function_of(target.transform.kind);
    state.epsilon = target.transform.epsilon;
    state.lambda = target.transform.lambda;
    open_.push_back(state);
    state.low = target.range.low;
    state.high = target.range.high;
    clamped_.push_back(state);
    alike_.push_back(alike_of(state, field, target.transform));
  }
}

bool PhysicalStates::transformed() const {
  return std::any_of(open_.begin(), open_.end(),
                     [](const StateChannel& channel) { return channel.function != ValueFunction::kNone; });
}

Array PhysicalStates::states_of(const Rank& rank, const Layout& layout, const Array& values,
                                const Array& origin, const std::vector<StateChannel>& channels) {
  const Box box = rank.box(layout);
  if (box.empty()) return {rank.context, box.extent, DType::kFloat64, Purpose::kWorkspace};
  const int last = box.extent.rank() - 1;
  return physical_states(rank.context, values, origin,
                         std::span(channels).subspan(static_cast<std::size_t>(box.begin[last]),
                                                     static_cast<std::size_t>(box.extent[last])));
}

Array PhysicalStates::of(const Rank& rank, const Layout& layout, const Array& values,
                         const Array& origin) const {
  return states_of(rank, layout, values, origin, open_);
}

Array PhysicalStates::predicted(const Rank& rank, const Layout& layout, const Array& values,
                                const Array& origin) const {
  return states_of(rank, layout, values, origin, clamped_);
}

double PhysicalStates::predicted(std::size_t target, double value, double origin, double rounding) const {
  const StateChannel& channel = clamped_.at(target);
  const auto is_at = [&](double end) {
    if (std::isinf(end)) return false;
    const double base = channel.increment ? channel.forward(origin) : channel.mean,
                 wanted = (channel.forward(end) - base) / channel.deviation;
    return std::abs(value - wanted) <= rounding * std::max(1.0, std::abs(wanted));
  };
  if (is_at(channel.low)) return channel.low;
  return is_at(channel.high) ? channel.high : channel.state(value, origin);
}

Array PhysicalStates::alike_at_bounds(const Rank& rank, const Layout& layout, const Array& states) const {
  const auto free = [](const StateChannel& channel) {
    return std::isinf(channel.low) && std::isinf(channel.high);
  };
  const Box box = rank.box(layout);
  if (box.empty() || std::ranges::all_of(alike_, free)) return states;
  const int last = box.extent.rank() - 1;
  return physical_states(rank.context, states, states,
                         std::span(alike_).subspan(static_cast<std::size_t>(box.begin[last]),
                                                   static_cast<std::size_t>(box.extent[last])));
}

Array PhysicalStates::of_members(const Rank& rank, const Layout& layout, const Array& together,
                                 const Array& origin, std::int64_t members) const {
  std::vector<Array> states;
  for (std::int64_t j = 0; j < members; ++j)
    states.push_back(predicted(rank, layout, member_of(rank.context, together, members, j), origin));
  return join_members(rank.context, states);
}

}  // namespace jigsaw::inline task
