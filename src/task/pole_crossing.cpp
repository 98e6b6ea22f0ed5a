#include "task/pole_crossing.h"

#include <algorithm>

namespace jigsaw::inline task {

PoleCrossing pole_crossing(const std::vector<Channel>& inputs, const Statistics& statistics) {
  const auto is_component = [](const Channel& channel) { return channel.vector_component; };
  if (std::none_of(inputs.begin(), inputs.end(), is_component)) return {};
  PoleCrossing crossing;
  for (const Channel& channel : inputs) {
    const bool component = is_component(channel);
    double offset = 0;
    if (component) {
      const FieldStatistics& field = statistics.of(channel.field);
      offset = -2 * field.mean / field.deviation;
    }
    crossing.factor.push_back(component ? -1 : 1);
    crossing.offset.push_back(offset);
  }
  return crossing;
}

}  // namespace jigsaw::inline task
