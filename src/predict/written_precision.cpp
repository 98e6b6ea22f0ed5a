#include "predict/written_precision.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline predict {

bool leaves_single_range(const Channel& channel, const FieldStatistics& field) {
  // float32 reaches from 2^-126 to 2^128.
  constexpr double kLeastSize = 0x1p-104, kLargestSize = 0x1p108;
  const auto size = [&](double value) { return std::abs(channel.transform.inverse(value)); };
  const double usual = std::max(size(field.mean - field.deviation), size(field.mean + field.deviation));
  const double largest =
      field.least && field.largest ? std::max({usual, size(*field.least), size(*field.largest)}) : usual;
  return largest > kLargestSize || (usual > 0 && usual < kLeastSize);
}

bool needs_double_precision(const Channel& channel, const FieldStatistics& field) {
  constexpr double kRounding = 0x1p-24, kLeastPart = 1e-3;
  return leaves_single_range(channel, field) ||
         (channel.transform.linear() && kRounding * std::abs(field.mean) > kLeastPart * field.deviation);
}

void require_single_range(const std::vector<Channel>& targets, const std::vector<int>& written,
                          const Statistics& statistics) {
  for (const int number : written) {
    const Channel& target = targets[static_cast<std::size_t>(number)];
    const FieldStatistics& field = statistics.of(target.field);
    if (!leaves_single_range(target, field)) continue;
    const auto end = [&](double deviations) {
      return target.transform.inverse(field.mean + deviations * field.deviation);
    };
    throw ConfigError(
        concat("command line: forecasts of fields are written in single precision, whose range ", target.name,
               " leaves (a deviation around its mean are ", end(-1), " to ", end(1),
               field.units.empty() ? "" : " ", field.units,
               "); leave it out by --variables, or train with files that hold it in another "
               "unit"));
  }
}

}  // namespace jigsaw::inline predict
