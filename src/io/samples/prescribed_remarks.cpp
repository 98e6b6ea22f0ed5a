#include "samples/prescribed_remarks.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "base/text.h"

namespace jigsaw::inline samples {

namespace {

/// "120 days", "6 h".
std::string duration(Time seconds) {
  if (seconds < 2 * kDay && seconds % kDay != 0) return duration_text(seconds);
  char number[32];
  std::snprintf(number, sizeof number, "%.4g", static_cast<double>(seconds) / static_cast<double>(kDay));
  return concat(number, seconds == kDay ? " day" : " days");
}

}  // namespace

std::vector<std::string> gap_remarks(const Dataset& data, const std::vector<Period>& used) {
  const FileSet& files = data.files();
  std::vector<std::string> remarks;
  std::set<std::string> told;
  for (const Field& field : fields_of(data.channels().inputs, Role::kPrescribed)) {
    const Between between = files.between(field);
    const Calendar calendar = files.calendar_of(field);
    std::vector<Period> gaps = wide_gaps(files.times(field), between, calendar);
    std::erase_if(gaps, [&](const Period& gap) {
      const auto meets = [&](const Period& one) { return one.first < gap.last && gap.first < one.last; };
      return between != Between::kCycle && std::ranges::none_of(used, meets);
    });
    if (gaps.empty() || !told.insert(field.variable).second) continue;
    const bool holds = between == Between::kLatest || between == Between::kHold;
    remarks.push_back(
        concat(field.name(), " of data.forcing_variables is ", holds ? "held" : "interpolated", " from ",
               format_time(gaps[0].first, calendar), " to ", format_time(gaps[0].last, calendar), ", over ",
               duration(gaps[0].last - gaps[0].first), ", and its times are usually ",
               duration(median_step(files.times(field))), " apart",
               gaps.size() > 1 ? concat("; there ", gaps.size() > 2 ? "are " : "is ", gaps.size() - 1,
                                        " more such ", gaps.size() > 2 ? "gaps" : "gap")
                               : std::string(),
               "; check that its files are complete"));
  }
  return remarks;
}

std::vector<std::string> later_start_remarks(const Dataset& data, std::int64_t steps) {
  const Time last = steps * data.options().lead_time;
  std::vector<std::string> remarks;
  for (const VariableOptions& variable : data.options().forcing_variables) {
    if (!variable.lead || *variable.lead >= last) continue;
    remarks.push_back(concat(variable.name, " of data.forcing_variables is of forecasts of ",
                             duration_text(*variable.lead), ", and steps reach ", duration_text(last),
                             ": later ones are given forecasts that began after their start, which nobody "
                             "has then"));
  }
  return remarks;
}

std::vector<std::string> blank_remarks(const Dataset& data, std::vector<Time> times, Communicator& world) {
  std::ranges::sort(times);
  times.erase(std::unique(times.begin(), times.end()), times.end());
  const std::vector<Field> fields = fields_of(data.channels().inputs, Role::kPrescribed);
  if (fields.empty() || times.empty()) return {};
  // How many ranks saw a value of each field at each time, and behind that how many saw none.
  const std::size_t all = fields.size() * times.size();
  std::vector<double> counts(2 * all);
  for (std::size_t f = 0; f < fields.size(); ++f) {
    for (std::size_t t = 0; t < times.size(); ++t) {
      const std::optional<bool> seen = data.files().seen_at(fields[f], times[t]);
      if (seen) counts[(*seen ? 0 : all) + f * times.size() + t] = 1;
    }
  }
  counts = world.all_reduce(counts, ReduceOp::kSum);
  std::vector<std::string> remarks;
  std::set<std::string> told;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    std::vector<Time> blank;
    for (std::size_t t = 0; t < times.size(); ++t) {
      const std::size_t i = f * times.size() + t;
      if (counts[i] == 0 && counts[all + i] > 0) blank.push_back(times[t]);
    }
    if (blank.empty() || !told.insert(fields[f].variable).second) continue;
    remarks.push_back(concat(
        fields[f].name(), " of data.forcing_variables is missing everywhere at ",
        format_time(blank.front(), data.files().calendar()),
        blank.size() > 1 ? concat(", and at ", blank.size() - 1, " more of ", counted(times.size(), "time"))
                         : std::string(),
        "; the model was given its mean there"));
  }
  return remarks;
}

std::vector<Time> times_of_forecasts(const Dataset& data, const std::vector<Time>& starts, int leads,
                                     int first) {
  std::set<Time> times;
  for (const Time start : starts)
    for (int k = first; k <= leads; ++k) times.insert(start + k * data.options().lead_time);
  return {times.begin(), times.end()};
}

}  // namespace jigsaw::inline samples
