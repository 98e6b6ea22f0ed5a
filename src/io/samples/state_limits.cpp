#include "samples/state_limits.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <set>

#include "base/text.h"
#include "comm/agreement.h"

namespace jigsaw::inline samples {

namespace {

constexpr double kDeviations = 5;  // beyond the ends
constexpr double kUnknownEnds = 15, kSkewedEnd = 150;

/// Rows that are read of all fields together, and of each.
constexpr std::size_t kMostRead = 128, kFewestOfEach = 2, kMostOfEach = 16;

std::string short_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

StateLimits limits_of(const Channel& channel, const FieldStatistics& field,
                      const std::optional<double>& deviations) {
  if (channel.transform.kind == TransformKind::kNone || !(field.deviation > 0)) return {};
  const double beyond = deviations.value_or(kDeviations);
  const auto ends = [&](double least, double largest, double deviation) {
    const double more = std::max(beyond * deviation, deviations ? 0.0 : (largest - least) / 2);
    return StateLimits{least - more, largest + more};
  };
  if (channel.transform.kind == TransformKind::kMinMax)  // the deviation is the whole range
    return ends(field.mean, field.mean + field.deviation, field.deviation / kDeviations);
  if (!channel.transform.linear()) {
    if (!field.least || !field.largest) return {};
    const double least = channel.transform.inverse(*field.least),
                 largest = channel.transform.inverse(*field.largest);
    return ends(least, largest, (largest - least) / kDeviations);
  }
  if (field.least && field.largest) return ends(*field.least, *field.largest, field.deviation);
  const bool skewed = field.mean > 0 && field.mean < 2 * field.deviation;
  return {field.mean - (kUnknownEnds + beyond) * field.deviation,
          field.mean + ((skewed ? kSkewedEnd : kUnknownEnds) + beyond) * field.deviation};
}

/// What periods cover, in parts that are apart, ascending.
std::vector<Period> united(std::vector<Period> periods) {
  std::ranges::sort(periods, {}, &Period::first);
  std::vector<Period> parts;
  for (const Period& period : periods) {
    if (parts.empty() || period.first > parts.back().last) {
      parts.push_back(period);
    } else {
      parts.back().last = std::max(parts.back().last, period.last);
    }
  }
  return parts;
}

/// The first and the last time of a field in the periods, and some between. Both ascend.
std::vector<Time> some_times(const std::vector<Time>& all, const std::vector<Period>& periods,
                             std::size_t most) {
  std::vector<Time> within;
  auto period = periods.begin();
  for (const Time time : all) {
    while (period != periods.end() && period->last < time) ++period;
    if (period != periods.end() && period->contains(time)) within.push_back(time);
  }
  if (within.size() <= most) return within;
  std::vector<Time> some;
  for (std::size_t i = 0; i < most; ++i) some.push_back(within[i * (within.size() - 1) / (most - 1)]);
  return some;
}

/// Whether all values that are there lie above, or all below; nothing where some do not.
std::optional<bool> all_beyond(const std::vector<double>& values, const StateLimits& limits) {
  std::size_t above = 0, below = 0, there = 0;
  for (const double value : values) {
    there += std::isnan(value) ? 0 : 1;
    above += value > limits.high ? 1 : 0;
    below += value < limits.low ? 1 : 0;
  }
  if (there == 0 || std::max(above, below) < there) return std::nullopt;
  return above > 0;
}

}  // namespace

std::vector<StateLimits> state_limits(const Channels& channels, const Statistics& statistics,
                                      std::optional<double> deviations) {
  std::vector<StateLimits> limits;
  for (const Channel& target : channels.targets)
    limits.push_back(limits_of(target, statistics.of(target.field), deviations));
  return limits;
}

std::string text_beyond(const Channel& channel, const FieldStatistics& field, const StateLimits& limits,
                        bool above) {
  const std::string units = field.units.empty() ? "" : " " + field.units;
  const bool ends = field.least && field.largest;
  return concat(above ? "above " : "below ", short_text(above ? limits.high : limits.low), units,
                ends
                    ? concat(", where data.train holds ", short_text(channel.transform.inverse(*field.least)),
                             " to ", short_text(channel.transform.inverse(*field.largest)), units)
                    : concat(", where the training data have mean ", short_text(field.mean),
                             " and deviation ", short_text(field.deviation)));
}

namespace {

std::vector<std::string> warnings_of_units(Dataset& data, const std::vector<Period>& given) {
  const std::vector<Period> periods = united(given);
  FileSet& files = data.files();
  std::vector<const Channel*> channels;
  std::set<Field> known;
  for (const auto* of : {&data.channels().targets, &data.channels().inputs}) {
    for (const Channel& channel : *of) {
      const bool in_time = channel.role == Role::kPrognostic || channel.role == Role::kDiagnostic ||
                           channel.role == Role::kPrescribed;
      if (in_time && !channel.mask && data.statistics().fields.contains(channel.field.name()) &&
          known.insert(channel.field).second)
        channels.push_back(&channel);
    }
  }
  const std::size_t each =
      std::clamp(kMostRead / std::max<std::size_t>(channels.size(), 1), kFewestOfEach, kMostOfEach);
  const std::int64_t row = data.grid().shape()[0] / 3, columns = data.grid().shape()[1];
  std::vector<std::string> warnings;
  std::set<std::string> told;
  std::vector<double> values(static_cast<std::size_t>(columns));
  for (const Channel* channel : channels) {
    const FieldStatistics& field = data.statistics().of(channel->field);
    if (!field.least || !field.largest) continue;
    const StateLimits limits = limits_of(*channel, field, {});
    for (const Time time : some_times(files.times(channel->field), periods, each)) {
      std::set<std::string> read;  // one member of each file
      for (std::int32_t member = 0; member < files.members_of(channel->field); ++member) {
        const Moment moment(time, member);
        const std::string& path = files.path_at(channel->field, moment);
        if (!read.insert(path).second) continue;
        files.read(channel->field, moment, {{row, 0}, {1, columns}}, values);
        const std::optional<bool> above = all_beyond(values, limits);
        if (!above || !told.insert(channel->field.variable).second) continue;
        warnings.push_back(concat(channel->name, " in ", path, " (at ", files.text_of(time), ") lies ",
                                  text_beyond(*channel, field, limits, *above),
                                  "; is it in another unit than it says?"));
      }
    }
  }
  return warnings;
}

}  // namespace

std::vector<std::string> unit_warnings(Dataset& data, const std::vector<Period>& periods,
                                       Communicator& world) {
  std::vector<std::string> warnings;
  together(world, [&] {
    if (world.rank() == 0) warnings = warnings_of_units(data, periods);
  });
  return warnings;
}

}  // namespace jigsaw::inline samples
