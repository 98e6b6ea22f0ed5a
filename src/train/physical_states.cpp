#include "train/physical_states.h"

#include <algorithm>

#include "array/transfer.h"

namespace jigsaw::inline train {

PhysicalStates::PhysicalStates(const Channels& channels, const Statistics& statistics, Predict predict) {
  for (const Channel& target : channels.targets) {
    const FieldStatistics& field = statistics.of(target.field);
    const bool increment = predict == Predict::kIncrement && target.role == Role::kPrognostic;
    scales_.push_back({increment, field.mean, increment ? field.increment_deviation : field.deviation,
                       target.transform, target.range});
  }
}

bool PhysicalStates::transformed() const {
  return std::any_of(scales_.begin(), scales_.end(),
                     [](const Scale& scale) { return !scale.transform.linear(); });
}

std::vector<double> PhysicalStates::states_of(const Rank& rank, const Layout& layout, const Array& values,
                                              const Array& origin, bool clamped) const {
  const Box box = rank.box(layout);
  if (box.empty()) return {};
  std::vector<double> states = download_values(rank.context, values);
  const std::vector<double> starts = download_values(rank.context, origin);
  const int last = box.extent.rank() - 1;
  const auto channels = static_cast<std::size_t>(box.extent[last]);
  const auto first = static_cast<std::size_t>(box.begin[last]);
  for (std::size_t i = 0; i < states.size(); ++i) {
    const Scale& scale = scales_[first + i % channels];
    const double base = scale.increment ? scale.transform.forward(starts[i]) : scale.mean;
    const double state = scale.transform.inverse(base + scale.deviation * states[i]);
    const bool below = clamped && state < scale.range.low, above = clamped && state > scale.range.high;
    states[i] = below ? scale.range.low : above ? scale.range.high : state;
  }
  return states;
}

std::vector<double> PhysicalStates::of(const Rank& rank, const Layout& layout, const Array& values,
                                       const Array& origin) const {
  return states_of(rank, layout, values, origin, false);
}

std::vector<double> PhysicalStates::predicted(const Rank& rank, const Layout& layout, const Array& values,
                                              const Array& origin) const {
  return states_of(rank, layout, values, origin, true);
}

}  // namespace jigsaw::inline train
