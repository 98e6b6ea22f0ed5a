#include "fields/forecast_axes.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline fields {

namespace {

/// What a variable of durations says, in seconds.
std::vector<Time> leads_of(DataFile& file, const FileVariable& variable) {
  return decode_times(file.file().read_all(variable), variable.text("units"), "",
                      concat("the leads ", variable.name, " of ", file.file().path()));
}

}  // namespace

bool ForecastAxes::holds(Time from, Time ahead) const {
  return place_of_start.contains(from) && place_of_lead.contains(ahead);
}

std::optional<std::map<std::string, std::int64_t>> ForecastAxes::positions(Time from, Time ahead,
                                                                           std::int64_t number) const {
  if (!holds(from, ahead) || number >= members) return std::nullopt;
  std::map<std::string, std::int64_t> found;
  if (!start.empty()) found[start] = place_of_start.at(from);
  if (!lead.empty()) found[lead] = place_of_lead.at(ahead);
  if (!member.empty()) found[member] = number;
  return found;
}

namespace {

ForecastAxes found_axes(DataFile& file, const FileVariable& variable) {
  file.file().require_numbers(variable);
  const FieldAxes axes = file.axes(variable);
  const auto refuse = [&](const std::string& why) {
    throw DataError(concat(variable.name, " in ", file.file().path(), " cannot be read as forecasts: ", why));
  };
  ForecastAxes result;
  const FileVariable* leads = nullptr;
  std::string times;  // a dimension, with its groups
  for (int d = 0; d < variable.shape.rank(); ++d) {
    const std::string& dimension = variable.dimensions[static_cast<std::size_t>(d)];
    if (d == axes.latitude || d == axes.longitude || d == axes.cells || d == axes.level) continue;
    if (d == axes.version || d == axes.channel) continue;
    if (d == axes.member) {
      result.member = without_groups(dimension);
      result.members = variable.shape[d];
    } else if (const FileVariable* const along = file.leads_along(dimension); along != nullptr) {
      if (leads != nullptr) refuse(concat("leads stand along ", result.lead, " and along ", dimension));
      leads = along;
      result.lead = without_groups(dimension);
    } else if (d == axes.time || file.counts_dates(dimension)) {
      if (!times.empty()) refuse(concat("times stand along ", times, " and along ", dimension));
      times = dimension;
    } else if (variable.shape[d] != 1) {
      refuse(concat("nothing says what the ", variable.shape[d], " entries of its dimension ", dimension,
                    " are; leads have a coordinate in hours or days, starts one with units such as \"hours "
                    "since 2021-01-01\""));
    }
  }
  if (leads == nullptr) leads = file.scalar_lead();
  if (!times.empty() && file.starts_along(times))
    refuse(
        concat("starts and leads stand in pairs along ", times, "; write each along a dimension of its own"));
  const FileVariable* const start = times.empty() || leads == nullptr ? file.scalar_start() : nullptr;
  const std::optional<std::string> valid = times.empty() ? file.times_of(variable, axes) : std::nullopt;
  if (times.empty() && start == nullptr && !valid)
    refuse("nothing says when they start: a dimension of times, or a scalar forecast_reference_time");
  if (times.empty() && start == nullptr && leads != nullptr && without_groups(*valid) == result.lead) {
    // Leads that are known by what they are of alone.
    const std::vector<Time> of = file.times(*valid);
    result.leads = leads_of(file, *leads);
    result.calendar = file.calendar(*valid);
    result.starts = {of.at(0) - result.leads.at(0)};
    for (std::size_t i = 0; i < of.size(); ++i) {
      if (of[i] - result.leads[i] != result.starts[0])
        refuse(concat("its leads and the times that they are of, along ", *valid, ", say different starts"));
    }
    return result;
  }
  const std::string said = !times.empty() ? times : start != nullptr ? start->name : *valid;
  result.start = without_groups(times);
  result.starts = file.times(said);
  result.calendar = file.calendar(said);
  result.leads = leads != nullptr ? leads_of(file, *leads) : std::vector<Time>{0};
  if (!times.empty() && leads == nullptr && start != nullptr) {
    // The times that one forecast is of.
    result.lead = std::exchange(result.start, "");
    const Time first = file.times(start->name).at(0);
    result.leads = std::exchange(result.starts, {first});
    for (Time& lead : result.leads) lead -= first;
    return result;
  }
  const bool holds = times.empty() ? start == nullptr : file.says_valid_times(times);
  if (!holds || result.leads.size() > 1) return result;
  for (Time& one : result.starts) one -= result.leads.front();
  return result;
}

}  // namespace

ForecastAxes forecast_axes(DataFile& file, const FileVariable& variable) {
  ForecastAxes axes = found_axes(file, variable);
  const auto index = [&](const char* what, const std::vector<Time>& times,
                         std::unordered_map<Time, std::int64_t>& places) {
    for (std::size_t i = 0; i < times.size(); ++i) {
      if (places.try_emplace(times[i], static_cast<std::int64_t>(i)).second) continue;
      throw DataError(concat(variable.name, " in ", file.file().path(), " cannot be read as forecasts: the ",
                             what, " number ", i + 1, " is that of number ", places.at(times[i]) + 1,
                             ", too"));
    }
  };
  index("start", axes.starts, axes.place_of_start);
  index("lead", axes.leads, axes.place_of_lead);
  return axes;
}

}  // namespace jigsaw::inline fields
