#include "init/value_remarks.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/lower_case.h"
#include "base/text.h"
#include "init/field_samples.h"
#include "times/windows.h"

namespace jigsaw::inline init {

namespace {

/// The part of the points, in percent, at which a changing field is exactly 0 at all sampled times, where it
/// is nowhere else at any: land, most likely. 0: there is no such part.
double always_zero(FileSet& files, const Field& field) {
  std::vector<std::uint8_t> first;
  int states = 0;
  for (const Time time : sampled_times(files.times(field))) {
    const std::vector<double> values = sampled_values(files, field, time, kFewSampled);
    std::vector<std::uint8_t> zero(values.size());
    std::ranges::transform(values, zero.begin(), [](double value) { return value == 0 ? 1 : 0; });
    if (++states > 1 && zero != first) return 0;
    if (std::ranges::find(zero, 1) == zero.end() || std::ranges::find(zero, 0) == zero.end()) return 0;
    first = std::move(zero);
  }
  constexpr int kFewest = 3;
  if (states < kFewest) return 0;
  return 100.0 * static_cast<double>(std::ranges::count(first, 1)) / static_cast<double>(first.size());
}

/// Steps between packed values, as a share of their range: files may pack each state by another scale.
constexpr double kPacking = 1e-4;

/// How a field goes from one state to the next, over its points.
enum class Course : std::uint8_t { kStays, kGrows, kFalls };  // kFalls: at one point at least

Course course_of(const std::vector<double>& before, const std::vector<double>& after) {
  double least = INFINITY, largest = -INFINITY;
  for (const double value : after) {
    if (value < least) least = value;
    if (value > largest) largest = value;
  }
  const double packing = largest > least ? kPacking * (largest - least) : 0;
  Course course = Course::kStays;
  for (std::size_t i = 0; i < after.size(); ++i) {
    if (after[i] < before[i] - packing) return Course::kFalls;
    if (after[i] > before[i] + packing) course = Course::kGrows;
  }
  return course;
}

/// What a field is summed up since.
enum class Summed : std::uint8_t { kNot, kSinceMidnight, kSinceStart, kSinceOther };

bool says_accumulated(FileSet& files, const Field& field) {
  const auto texts = files.describe(field).texts;
  return std::ranges::any_of(texts, [](const auto& attribute) {
    return to_lower(attribute.second).find("accum") != std::string::npos;
  });
}

/// Whether a field that says it is accumulated grows or stays over the times sampled of all, too.
bool never_falls(FileSet& files, const Field& field) {
  if (!says_accumulated(files, field)) return false;
  std::vector<double> before;
  for (const Time time : sampled_times(files.times(field))) {
    std::vector<double> values = sampled_values(files, field, time, kFewSampled);
    if (!before.empty() && course_of(before, values) == Course::kFalls) return false;
    before = std::move(values);
  }
  return true;
}

/// Whether times are those of data.deaccumulate "day": whole steps from 00:00, which divide the day.
bool are_steps_of_days(const FileSet& files, const std::vector<Time>& times) {
  const Time step = usual_step(times);
  return step > 0 && kDay % step == 0 && !files.of_months() && files.file_calendar() != Calendar::kNone &&
         std::ranges::all_of(times, [step](Time time) { return time % step == 0; });
}

/// A field that is summed up since a fixed hour, as rain since midnight, grows or stays over successive times
/// in the middle of all at every point, but where the sums begin anew, which they do several times, never
/// twice in a row, and once in two growing steps at most. Others mostly show after three states that they do
/// not. One that is summed up since the start of a simulation never begins anew, as other fields may by
/// chance, or for a season: it must say that it is accumulated.
Summed summed_since(FileSet& files, const Field& field) {
  constexpr std::size_t kMostTimes = 50;  // of hours, with two midnights at least
  const std::vector<Time>& times = files.times(field);
  const std::size_t looked = std::min(times.size(), kMostTimes), first = (times.size() - looked) / 2;
  std::vector<double> before;
  int grown = 0, fallen = 0;
  bool fell = false, at_midnights = true;
  double largest = 0;
  for (std::size_t t = first; t < first + looked; ++t) {
    std::vector<double> values = sampled_values(files, field, times[t], kFewSampled);
    if (t > first) {
      const Course course = course_of(before, values);
      if (course == Course::kFalls && fell) return Summed::kNot;
      fell = course == Course::kFalls;
      fallen += fell ? 1 : 0;
      grown += course == Course::kGrows ? 1 : 0;
      // Where it did not rain all day nothing falls.
      const auto is_some = [&](double value) { return value > kPacking * largest; };
      const bool ended_day = times[t - 1] % kDay == 0 && std::ranges::any_of(before, is_some);
      at_midnights = at_midnights && fell == ended_day;
    }
    for (const double value : values)
      if (value > largest) largest = value;
    before = std::move(values);
  }
  if (fallen == 0 && grown > 1 && !files.of_months() && never_falls(files, field)) return Summed::kSinceStart;
  if (fallen < 2 || grown < 2 * fallen) return Summed::kNot;
  return at_midnights && are_steps_of_days(files, times) ? Summed::kSinceMidnight : Summed::kSinceOther;
}

/// Where values lie over the sampled times, and how many at the ends of usual ranges.
struct Range {
  double least = INFINITY, largest = -INFINITY, sum = 0;
  std::int64_t values = 0, at_zero = 0, at_one = 0, at_hundred = 0;

  double share(std::int64_t count) const { return static_cast<double>(count) / static_cast<double>(values); }
  /// 1 of fractions, 100 of percents; nothing where they go on beyond or seldom come there.
  std::optional<int> upper_end() const {
    if (largest <= 1 + kPacking && often(at_one)) return 1;
    constexpr int kPercent = 100;
    if (largest <= kPercent * (1 + kPacking) && often(at_hundred)) return kPercent;
    return std::nullopt;
  }
  bool often(std::int64_t count) const {
    constexpr double kOften = 0.01;
    return share(count) >= kOften;
  }
};

Range range_of(FileSet& files, const Field& field) {
  Range range;
  for (const Time time : sampled_times(files.times(field))) {
    for (const double value : sampled_values(files, field, time, kFewSampled)) {
      if (std::isnan(value)) continue;
      ++range.values;
      range.sum += value;
      range.least = std::min(range.least, value);
      range.largest = std::max(range.largest, value);
      range.at_zero += value == 0 ? 1 : 0;
      range.at_one += std::abs(value - 1) <= kPacking ? 1 : 0;
      range.at_hundred += std::abs(value / 100 - 1) <= kPacking ? 1 : 0;
    }
  }
  return range;
}

/// Of values that are often 0 and never below; "" says nothing.
std::string remark_on_range(const Range& range, const std::string& name) {
  if (range.values == 0 || range.least != 0 || range.largest == 0 || !range.often(range.at_zero)) return "";
  const std::optional<int> upper = range.upper_end();
  std::string remark = concat(
      name,
      upper ? concat(" lies between 0 and ", *upper, ", and often at the ends")
            : concat(" is never below 0, and is 0 at ", std::round(100 * range.share(range.at_zero)),
                     " % of the points"),
      ": data.clamp {\"", name, "\": [0, ", upper ? concat(*upper) : "null", "]} keeps predictions there");
  constexpr double kSkewed = 30;
  const double mean = range.sum / static_cast<double>(range.values);
  if (!upper && range.largest > kSkewed * mean) {
    remark +=
        concat(", and data.transforms {\"", name, R"(": {"type": "log", "epsilon": )",
               std::pow(10, std::floor(std::log10(mean)) - 1), "}} makes its few large values count less");
  }
  return remark;
}

}  // namespace

ValueRemark remark_on_values(FileSet& files, const Field& field) {
  if (const double part = always_zero(files, field); part > 0) {
    return {concat(field.name(), " is exactly 0 at the same ", std::clamp(std::round(part), 1.0, 99.0),
                   " % of the points ", looked_at(files, field),
                   ", and nowhere else: if that is land, or else no value, say so: data.missing {\"",
                   field.variable, "\": 0}"),
            std::nullopt};
  }
  switch (summed_since(files, field)) {
    case Summed::kSinceMidnight:
      return {
          concat(field.name(), " is summed up since 00:00 of each day: data.deaccumulate makes a state the ",
                 "sum over the step that ends then"),
          SummedSince::kDay};
    case Summed::kSinceStart:
      return {
          concat(field.name(), " is summed up and never begins anew: data.deaccumulate makes a state the ",
                 "sum over the step that ends then"),
          SummedSince::kStart};
    case Summed::kSinceOther:
      return {
          concat(field.name(),
                 " grows from time to time at every point, and then begins anew: it seems to be summed up ",
                 "since a fixed hour; a model needs the amounts of each step, the differences of successive ",
                 "values (the first one after each beginning as it is)"),
          std::nullopt};
    case Summed::kNot:
      break;
  }
  return {remark_on_range(range_of(files, field), field.variable), std::nullopt};
}

}  // namespace jigsaw::inline init
