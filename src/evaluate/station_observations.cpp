#include "evaluate/station_observations.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "base/text.h"
#include "fields/units.h"
#include "files/value_kinds.h"

namespace jigsaw::inline evaluate {

namespace {

/// The position of a target's level in a variable of observations; 0 where neither has any.
std::int64_t level_of(DataFile& file, const FileVariable& variable, const FieldAxes& axes,
                      const Field& field) {
  if (axes.level < 0) return 0;
  const std::string& dimension = variable.dimensions[static_cast<std::size_t>(axes.level)];
  if (variable.shape[axes.level] == 1 && !field.level) return 0;
  const std::vector<double>& levels = file.coordinates(dimension);
  for (std::size_t i = 0; i < levels.size() && field.level; ++i)
    if (same_level(levels[i], *field.level)) return static_cast<std::int64_t>(i);
  return -1;
}

/// States are compared with states, and means with means.
void require_same_method(const std::string& what, const FileVariable& variable, Dataset& data,
                         const Field& field) {
  const auto& texts = data.files().describe(field).texts;
  const auto said = texts.find("cell_methods");
  const std::string wanted = said == texts.end() ? "" : method_along(said->second, "time"),
                    there = method_along(variable.text("cell_methods"), "time");
  if (wanted.empty() || there.empty() || wanted == there) return;
  throw DataError(concat(what, " is of the method \"", there, "\" in time (cell_methods), and the data of \"",
                         wanted, "\""));
}

}  // namespace

StationObservations::StationObservations(const std::vector<std::string>& paths, const FileOpener& open,
                                         Dataset& data, const Period& wanted) {
  data.files().require_dates("--stations");
  for (const std::string& path : paths) {
    DataFile file(open(path));
    look_into(path, file, data, wanted);
  }
  for (const auto& [channel, series] : series_) channels_.push_back(channel);
  const bool any = std::ranges::any_of(series_, [](const auto& of_channel) {
    return std::ranges::any_of(of_channel.second, [](const Series& series) { return !series.times.empty(); });
  });
  if (!any) refuse_period(wanted, data);
}

void StationObservations::refuse_period(const Period& wanted, const Dataset& data) const {
  const auto [first, last] = std::ranges::minmax(seen_);
  throw DataError(concat("--stations: nothing was observed from ", data.files().text_of(wanted.first), " to ",
                         data.files().text_of(wanted.last), ", which the forecasts are of; the files hold ",
                         data.files().text_of(first), " to ", data.files().text_of(last)));
}

void StationObservations::look_into(const std::string& path, DataFile& file, Dataset& data,
                                    const Period& wanted) {
  const std::vector<Channel>& targets = data.channels().targets;
  bool found = false;
  for (std::size_t c = 0; c < targets.size(); ++c) {
    const std::optional<FieldPlace> place = file.find(targets[c].field);
    if (!place || place->channel >= 0) continue;
    const FieldAxes axes = file.axes(*place->variable);
    const std::string what = concat(targets[c].name, " in ", path);
    if (axes.cells < 0) {
      throw DataError(concat(what,
                             " is no series at stations, for it does not lie along a dimension of which one "
                             "variable holds latitudes and another one longitudes"));
    }
    if (level_of(file, *place->variable, axes, targets[c].field) < 0) continue;
    found = true;
    const std::string remark =
        require_same_unit(what, place->variable->text("units"), data.files().units(targets[c].field));
    if (!remark.empty()) remarks_.push_back(remark);
    require_same_method(what, *place->variable, data, targets[c].field);
    series_[static_cast<int>(c)].push_back(read(file, *place->variable, targets[c], data, wanted));
  }
  if (found) return;
  throw DataError(concat("--stations: ", path, " holds none of the variables that are scored, such as ",
                         targets.front().name));
}

StationObservations::Series StationObservations::read(DataFile& file, const FileVariable& variable,
                                                      const Channel& target, Dataset& data,
                                                      const Period& wanted) {
  const std::string what = concat(target.name, " in ", file.file().path());
  const FieldAxes axes = file.axes(variable);
  file.file().require_numbers(variable);
  for (int d = 0; d < variable.shape.rank(); ++d) {
    if (d == axes.time || d == axes.cells || d == axes.level || variable.shape[d] == 1) continue;
    throw DataError(concat(what, " has the dimension ", variable.dimensions[static_cast<std::size_t>(d)],
                           " beside times and stations"));
  }
  if (axes.time < 0) throw DataError(concat(what, " has no dimension of times"));
  const std::string& dimension = variable.dimensions[static_cast<std::size_t>(axes.time)];
  if (file.calendar(dimension) != data.files().file_calendar()) {
    throw DataError(concat(what, " counts in the calendar ", file.calendar_name(dimension),
                           ", and the data in ", data.files().calendar_name()));
  }
  Series series;
  series.path = file.file().path();
  series.places = add_places(places_of(file, variable));
  const std::vector<Time>& times = file.times(dimension);
  std::int64_t first = std::ssize(times), end = 0;
  for (std::int64_t i = 0; i < std::ssize(times); ++i) {
    const Time time = times[static_cast<std::size_t>(i)];
    seen_.push_back(time);
    if (!wanted.contains(time)) continue;
    first = std::min(first, i);
    end = i + 1;
  }
  const auto [least, most] = std::ranges::minmax(seen_);
  seen_ = {least, most};
  if (first >= end) return series;
  Box box{Shape::filled(variable.shape.rank(), 0), Shape::filled(variable.shape.rank(), 1)};
  box.begin[axes.time] = first;
  box.extent[axes.time] = end - first;
  box.extent[axes.cells] = variable.shape[axes.cells];
  if (axes.level >= 0) box.begin[axes.level] = level_of(file, variable, axes, target.field);
  std::vector<float> values(static_cast<std::size_t>(box.extent.count()));
  file.file().read<float>(variable, box, values);
  const auto rows = static_cast<std::size_t>(end - first), places = series.places.size();
  if (axes.cells < axes.time) {
    series.values.resize(values.size());
    for (std::size_t place = 0; place < places; ++place)
      for (std::size_t row = 0; row < rows; ++row)
        series.values[row * places + place] = values[place * rows + row];
  } else {
    series.values = std::move(values);
  }
  for (std::size_t row = 0; row < rows; ++row) {
    const Time time = times[static_cast<std::size_t>(first) + row];
    if (!series.times.insert({time, row}).second)
      throw DataError(concat(what, " holds ", data.files().text_of(time), " twice"));
  }
  return series;
}

std::vector<std::size_t> StationObservations::add_places(const NamedPlaces& places) {
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::string key = concat(places.names[i], '\0', places.latitudes[i], '\0', places.longitudes[i]);
    const auto [known, added] = known_.insert({key, places_.size()});
    numbers.push_back(known->second);
    if (!added) continue;
    places_.names.push_back(places.names[i]);
    places_.latitudes.push_back(places.latitudes[i]);
    places_.longitudes.push_back(places.longitudes[i]);
  }
  return numbers;
}

std::vector<double> StationObservations::at(int channel, Time time) const {
  std::vector<double> values(places_.size(), std::numeric_limits<double>::quiet_NaN());
  const auto of_channel = series_.find(channel);
  if (of_channel == series_.end()) return values;
  for (const Series& series : of_channel->second) {
    const auto row = series.times.find(time);
    if (row == series.times.end()) continue;
    const float* const from = series.values.data() + row->second * series.places.size();
    for (std::size_t i = 0; i < series.places.size(); ++i) {
      double& value = values[series.places[i]];
      if (!std::isfinite(from[i])) continue;
      if (std::isfinite(value) && value != from[i]) {
        throw DataError(concat(series.path, " holds another value at ",
                               printable(places_.names[series.places[i]]),
                               " than another file of --stations: ", from[i], " in place of ", value));
      }
      value = from[i];
    }
  }
  return values;
}

}  // namespace jigsaw::inline evaluate
