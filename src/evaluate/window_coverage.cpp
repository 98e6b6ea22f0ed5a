#include "evaluate/window_coverage.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/text.h"
#include "times/windows.h"

namespace jigsaw::inline evaluate {

namespace {

/// Times that are put into one gap at most; a longer one is no gap in steps of that length.
constexpr Time kMostFilled = 1'000'000;

/// What each variable of the data is needed for.
std::vector<NeededVariable> needed_variables(const Dataset& data, int leads) {
  const DataOptions& options = data.options();
  std::vector<Time> at_leads;
  for (int lead = 1; lead <= leads; ++lead) at_leads.push_back(lead * options.lead_time);
  std::vector<Time> given = at_leads;
  given.insert(given.begin(), 0);
  std::vector<NeededVariable> needed;
  const auto need = [&](const Field& field, const std::vector<Time>& offsets) {
    needed.push_back(
        {field.variable, offsets, [&data, field](Time time) { return data.files().has(field, time); }});
  };
  for (const Channel& target : data.channels().targets) need(target.field, at_leads);
  for (const Field& field : fields_of(data.channels().inputs, Role::kPrognostic)) {
    need(field, options.input_times);
    if (!data.rim().empty()) need(field, given);
  }
  for (const Field& field : fields_of(data.channels().inputs, Role::kPrescribed)) need(field, given);
  return needed;
}

/// At which any of the states is; of variables that are there at unlike steps, at which all are that are
/// somewhere.
std::vector<Time> times_of_states(const Dataset& data) {
  std::set<Time> any;
  std::set<Time> steps;
  std::optional<std::vector<Time>> common;
  const auto add = [&](const Field& field) {
    const std::vector<Time>& times = data.files().times(field);
    if (times.empty()) return;
    any.insert(times.begin(), times.end());
    steps.insert(usual_step(times));
    common = common ? common_times(*common, times) : times;
  };
  for (const Channel& target : data.channels().targets) add(target.field);
  for (const Field& field : fields_of(data.channels().inputs, Role::kPrognostic)) add(field);
  if (steps.size() > 1 && !common->empty()) return *common;
  return {any.begin(), any.end()};
}

}  // namespace

std::vector<Time> expected_times(const std::vector<Time>& there, const Period& period, Time step) {
  const auto begin = std::ranges::lower_bound(there, period.first),
             end = std::ranges::upper_bound(there, period.last);
  std::vector<Time> times;
  if (begin >= end) return times;
  const auto fill = [&](Time after, Time before) {  // between two times, both left out
    if (step <= 0 || (before - after) / step > kMostFilled) return;
    for (Time time = after + step; time < before; time += step) times.push_back(time);
  };
  if (step > 0) {
    const Time steps = std::min((*begin - period.first) / step, kMostFilled);
    fill(*begin - (steps + 1) * step, *begin);
  }
  for (auto time = begin; time != end; ++time) {
    if (time != begin) fill(*(time - 1), *time);
    times.push_back(*time);
  }
  fill(*(end - 1), period.last + 1);
  return times;
}

WindowCoverage window_coverage(const std::vector<Time>& windows, const std::vector<Time>& there,
                               const std::vector<Period>& periods, Time reach,
                               const std::vector<NeededVariable>& needed) {
  const Time step = usual_step(there);
  std::set<Time> of_period(windows.begin(), windows.end());
  WindowCoverage coverage;
  coverage.scored = std::ssize(of_period);
  for (const Period& period : periods) {
    for (const Time time : expected_times(there, period, step))
      if (period.contains(time + reach)) of_period.insert(time);
  }
  coverage.of_period = std::ssize(of_period);
  std::map<std::string, std::set<Time>> kept_out;  // windows that a variable keeps from being scored
  for (const Time time : of_period) {
    if (std::ranges::binary_search(windows, time)) continue;
    bool lacks = false;
    for (const NeededVariable& variable : needed) {
      if (std::ranges::all_of(variable.offsets, [&](Time offset) { return variable.has(time + offset); }))
        continue;
      kept_out[variable.name].insert(time);
      lacks = true;
    }
    coverage.lacking += lacks ? 1 : 0;
  }
  std::map<std::set<Time>, std::vector<std::string>> alike;
  for (const auto& [name, times] : kept_out) alike[times].push_back(name);
  for (const auto& [times, names] : alike) coverage.left_out.push_back({names, std::ssize(times)});
  std::ranges::stable_sort(coverage.left_out, std::greater(), &WindowCoverage::LeftOut::windows);
  return coverage;
}

WindowCoverage window_coverage(const Dataset& data, int leads) {
  std::vector<Time> windows = data.valid_windows();
  windows.erase(std::unique(windows.begin(), windows.end()), windows.end());
  WindowCoverage coverage = window_coverage(windows, times_of_states(data),
                                            data.files().periods(data.options().valid, "data.valid"),
                                            leads * data.options().lead_time, needed_variables(data, leads));
  coverage.first_start = data.files().text_of(windows.front());
  coverage.last_start = data.files().text_of(windows.back());
  return coverage;
}

void WindowCoverage::take(const std::vector<Time>& starts, const FileSet& files) {
  const auto different = std::ssize(std::set<Time>(starts.begin(), starts.end()));
  without_forecast = scored - different;
  scored = different;
  first_start = files.text_of(starts.front());
  last_start = files.text_of(starts.back());
}

std::string WindowCoverage::sentence(const std::string& key) const {
  if (lacking == 0) return "";
  std::vector<std::string> reasons;
  for (const LeftOut& part : left_out) {
    reasons.push_back(
        concat(part.windows, " for ",
               first_and_more(part.variables.front(), std::ssize(part.variables) - 1, "variable")));
  }
  return concat("of the ", counted(of_period, "window"), " in ", key, ", ", lacking,
                lacking == 1 ? " is" : " are",
                " left out, for the files lack states that they need: ", join(reasons, ", "));
}

Json WindowCoverage::to_json() const {
  Json json = {{"first_start", first_start},
               {"last_start", last_start},
               {"windows", of_period},
               {"scored", scored},
               {"left_out", Json::array()}};
  if (without_forecast > 0) json["without_forecast"] = without_forecast;
  for (const LeftOut& part : left_out)
    json["left_out"].push_back({{"variables", part.variables}, {"windows", part.windows}});
  return json;
}

}  // namespace jigsaw::inline evaluate
