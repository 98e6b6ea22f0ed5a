#include "predict/physical.h"

#include <cmath>

#include "array/transfer.h"

namespace jigsaw::inline predict {

PhysicalStates::PhysicalStates(const Channels& channels, const Statistics& statistics, Predict predict) {
  for (const Channel& target : channels.targets) {
    const FieldStatistics& field = statistics.of(target.field);
    const bool increment = predict == Predict::kIncrement && target.role == Role::kPrognostic;
    scales_.push_back({increment, field.mean, increment ? field.increment_deviation : field.deviation});
  }
}

std::vector<double> PhysicalStates::of(const Rank& rank, const Layout& layout, const Array& values,
                                       const Array& origin) const {
  const Box box = rank.box(layout);
  if (box.empty()) return {};
  std::vector<double> states = download_values(rank.context, values);
  const std::vector<double> starts = download_values(rank.context, origin);
  const int last = box.extent.rank() - 1;
  const auto channels = static_cast<std::size_t>(box.extent[last]);
  const auto first = static_cast<std::size_t>(box.begin[last]);
  for (std::size_t i = 0; i < states.size(); ++i) {
    const Scale& scale = scales_[first + i % channels];
    states[i] = (scale.increment ? starts[i] : scale.mean) + scale.deviation * states[i];
  }
  return states;
}

std::int64_t hide_missing(const Rank& rank, const Array& origin, std::vector<double>& states) {
  if (states.empty()) return 0;
  const std::vector<double> starts = download_values(rank.context, origin);
  std::int64_t missing = 0;
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (!std::isnan(starts[i])) continue;
    states[i] = starts[i];
    ++missing;
  }
  return missing;
}

}  // namespace jigsaw::inline predict
