#include "init/first_times.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "base/text.h"
#include "fields/units.h"
#include "fields/variable_names.h"
#include "times/windows.h"

namespace jigsaw::inline init {

namespace {

/// The variables with the same times.
struct TimesGroup {
  std::vector<Time> times;
  std::int64_t fields = 0;
  std::int64_t steps = 0;  ///< steps_with()
  Time usual = 0;          ///< usual_step()
};

/// The steps of six hours, which is the lead that a first configuration prefers, with a time in them: states
/// that follow each other sooner tell little more.
std::int64_t steps_with(const std::vector<Time>& times) {
  constexpr Time kStep = 6 * kHour;
  std::int64_t steps = 0, last = -1;
  for (const Time time : times) {
    const std::int64_t step = (time - times.front()) / kStep;
    steps += step != last ? 1 : 0;
    last = step;
  }
  return steps;
}

std::int64_t fields_in(const VariableSummary& variable) {
  return std::max<std::int64_t>(1, std::ssize(variable.levels));
}

std::vector<TimesGroup> groups_by_times(const std::vector<VariableSummary>& variables) {
  std::map<std::vector<Time>, std::int64_t> fields;
  for (const VariableSummary& variable : variables) fields[variable.times] += fields_in(variable);
  std::vector<TimesGroup> groups;
  for (const auto& [times, count] : fields)
    groups.push_back({times, count, steps_with(times), usual_step(times)});
  return groups;
}

/// Whether what has times seldom can be given between them at all others.
bool spans(const TimesGroup& seldom, const TimesGroup& often) {
  return !often.times.empty() && seldom.usual > often.usual && seldom.times.front() <= often.times.front() &&
         seldom.times.back() >= often.times.back();
}

/// Those of which the fields that can be predicted at their times, or prescribed there, make most values.
std::vector<TimesGroup> richest_first(std::vector<TimesGroup> groups) {
  std::map<std::vector<Time>, std::int64_t> values;
  for (const TimesGroup& group : groups) {
    std::int64_t fields = group.fields;
    for (const TimesGroup& other : groups) fields += spans(other, group) ? other.fields : 0;
    values[group.times] = fields * group.steps;
  }
  std::ranges::stable_sort(groups, [&](const TimesGroup& a, const TimesGroup& b) {
    return std::pair(values[a.times], a.times.size()) > std::pair(values[b.times], b.times.size());
  });
  return groups;
}

std::string some_names(const std::vector<VariableSummary>& variables) {
  return first_and_more(variables.front().name, std::ssize(variables) - 1, "variable");
}

/// Whether one goes on where the other ends, under another of its usual names.
bool is_same_variable(const VariableSummary& a, const VariableSummary& b) {
  const std::vector<std::string>& names = other_names(a.name);
  const auto often = [](const VariableSummary& variable) {
    return static_cast<double>(usual_step(variable.times));
  };
  const bool as_often = often(a) < 1.2 * often(b) && often(b) < 1.2 * often(a);
  return as_often && std::ranges::find(names, b.name) != names.end() && a.fault.empty() && b.fault.empty() &&
         !a.times.empty() && !b.times.empty() && same_unit(a.units, b.units) &&
         std::ranges::equal(a.levels, b.levels, same_level) && common_times(a.times, b.times).empty();
}

}  // namespace

VariablesByTimes choose_by_times(const std::vector<VariableSummary>& variables,
                                 std::vector<std::string>& notices) {
  const std::vector<TimesGroup> groups = richest_first(groups_by_times(variables));
  VariablesByTimes chosen;
  if (groups.empty()) return chosen;
  TimesGroup predicted = groups.front();
  for (const TimesGroup& group : groups) {
    std::vector<Time> common = common_times(predicted.times, group.times);
    // All others together cost no more steps than validation has.
    if (5 * steps_with(common) >= 4 * predicted.steps) predicted.times = std::move(common);
  }
  predicted.usual = usual_step(predicted.times);
  const std::vector<Time>& times = chosen.times = predicted.times;
  const auto is_predicted = [&](const auto& of) { return std::ranges::includes(of.times, times); };
  std::ranges::copy_if(variables, std::back_inserter(chosen.predicted), is_predicted);
  const std::string others = some_names(chosen.predicted);
  for (const TimesGroup& group : groups) {
    std::vector<VariableSummary> here;
    std::ranges::copy_if(variables, std::back_inserter(here),
                         [&](const VariableSummary& variable) { return variable.times == group.times; });
    const std::string names = some_names(here);
    const bool many = here.size() > 1;
    if (is_predicted(group)) {
      if (group.times.size() > times.size())
        notices.push_back(concat("of the ", group.times.size(), " times of ", names, " those ", times.size(),
                                 " are used that all of data.variables have"));
    } else if (spans(group, predicted)) {
      chosen.prescribed.insert(chosen.prescribed.end(), here.begin(), here.end());
      notices.push_back(concat(names, many ? " have " : " has ", counted(std::ssize(group.times), "time"),
                               ", and ", others, " ", times.size(), many ? ": they are" : ": it is",
                               " taken as known ahead, linear between (data.forcing_variables); name ",
                               many ? "them" : "it", " in data.variables to predict ", many ? "them" : "it"));
    } else {
      for (const VariableSummary& variable : here) chosen.left_out.push_back(variable.name);
      notices.push_back(concat("left out: ", names, many ? ", which have " : ", which has ",
                               common_times(group.times, times).size(), " of the ", times.size(),
                               " times of ", others));
    }
  }
  return chosen;
}

std::vector<VariableSummary> join_by_names(const std::vector<VariableSummary>& variables,
                                           std::vector<std::string>& notices) {
  std::vector<VariableSummary> joined;
  for (const VariableSummary& variable : variables) {
    const auto same = std::ranges::find_if(
        joined, [&](const VariableSummary& other) { return is_same_variable(other, variable); });
    if (same == joined.end()) {
      joined.push_back(variable);
      continue;
    }
    const std::vector<std::string>& names = other_names(variable.name);
    const auto first = std::ranges::find_if(
        names, [&](const std::string& name) { return name == same->name || name == variable.name; });
    notices.push_back(concat(same->name, " and ", variable.name,
                             " are one variable by their usual names, at other times each: both are read as ",
                             *first));
    same->name = *first;
    std::vector<Time> times;
    std::ranges::merge(same->times, variable.times, std::back_inserter(times));
    same->times = std::move(times);
  }
  std::ranges::sort(joined, {}, &VariableSummary::name);
  return joined;
}

}  // namespace jigsaw::inline init
