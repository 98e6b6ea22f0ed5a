#include "evaluate/station_observations.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/lower_case.h"
#include "base/printable.h"
#include "base/text.h"
#include "evaluate/same_kind.h"
#include "fields/units.h"
#include "files/value_kinds.h"
#include "grids/degrees.h"

namespace jigsaw::inline evaluate {

namespace {

/// The position of a target's level along the levels of a variable of observations, 0 where it stands on that
/// level alone; nothing where it stands on others. @throws DataError  where it does not say its level
std::optional<std::int64_t> position_of_level(const std::string& what, DataFile& file,
                                              const FileVariable& variable, const Field& field) {
  const FieldAxes axes = file.axes(variable);
  if (!field.level) {
    if (axes.level < 0 || variable.shape[axes.level] == 1) return 0;
    throw DataError(concat(what, " stands on levels, and the data have none of it"));
  }
  if (axes.level >= 0) {
    const std::vector<double>& levels =
        file.coordinates(variable.dimensions[static_cast<std::size_t>(axes.level)]);
    const auto found =
        std::ranges::find_if(levels, [&](double level) { return same_level(level, *field.level); });
    return found == levels.end() ? std::nullopt : std::optional<std::int64_t>(found - levels.begin());
  }
  const std::optional<double> level = file.level_of(variable);
  if (level) return same_level(*level, *field.level) ? std::optional<std::int64_t>(0) : std::nullopt;
  throw DataError(
      concat(what, " does not say its level, which the data have several of; give it a scalar coordinate ",
             "such as height or level"));
}

/// "t2m" and "K" of "t2m [K]".
std::pair<std::string, std::string> name_and_unit(const std::string& title) {
  const std::size_t bracket = title.find('[');
  if (bracket == std::string::npos || !title.ends_with("]")) return {title, ""};
  std::string name = title.substr(0, bracket);
  name.erase(name.find_last_not_of(' ') + 1);
  std::string unit = title.substr(bracket + 1, title.size() - bracket - 2);
  unit.erase(0, std::min(unit.find_first_not_of(' '), unit.size()));
  unit.erase(unit.find_last_not_of(' ') + 1);
  return {name, unit};
}

/// Whether values are differences, of temperatures in degrees without the zero of their scale.
bool is_of_differences(const std::map<std::string, std::string>& texts) {
  const auto said = [&](const char* name) {
    const auto found = texts.find(name);
    return found == texts.end() ? std::string() : found->second;
  };
  const std::string method = method_along(said("cell_methods"), "time");
  return method == "range" || method == "standard_deviation" ||
         said("units_metadata").find("difference") != std::string::npos;
}

/// A time of a table, in UTC. @throws DataError
Time time_in(const TextTable& table, std::size_t column) {
  std::string text = table.text(column);
  for (const char* zone : {"+00:00", "+0000", " UTC"})
    if (text.ends_with(zone)) text.erase(text.size() - std::string_view(zone).size());
  if (const std::optional<Time> time = parse_time(text)) return *time;
  table.refuse(concat(printable(table.columns()[column]),
                      " must be a time in UTC such as 2021-02-20T06:00, not \"",
                      printable(table.text(column)), "\""));
}

}  // namespace

StationObservations::StationObservations(const std::vector<std::string>& paths, const FileOpener& open,
                                         Dataset& data, std::vector<Time> times, Time tolerance)
    : data_(data),
      times_(std::move(times)),
      tolerance_(tolerance),
      wanted_{times_.front() - tolerance, times_.back() + tolerance} {
  data.files().require_dates("--stations");
  for (const std::string& path : paths) {
    if (!is_variable_file(path)) {
      look_into_table(path);
      continue;
    }
    DataFile file(open(path));
    look_into(file);
  }
  for (const auto& [channel, observed] : observed_) channels_.push_back(channel);
  bring_together();
  const bool any = std::ranges::any_of(observed_, [](const auto& of_channel) {
    return std::ranges::find(of_channel.second.places, true) != of_channel.second.places.end();
  });
  if (!any) refuse_period();
}

void StationObservations::refuse_period() const {
  const std::string wanted =
      concat("--stations: nothing was observed from ", data_.files().text_of(times_.front()), " to ",
             data_.files().text_of(times_.back()), ", which the forecasts are of");
  if (seen_.empty()) throw DataError(wanted);
  throw DataError(concat(wanted, "; the files hold ", data_.files().text_of(seen_.front()), " to ",
                         data_.files().text_of(seen_.back())));
}

/// Whether a time is wanted.
bool StationObservations::note_time(Time time) {
  seen_.push_back(time);
  const auto [first, last] = std::ranges::minmax(seen_);
  seen_ = {first, last};
  return wanted_.contains(time);
}

void StationObservations::look_into(DataFile& file) {
  const std::vector<Channel>& targets = data_.channels().targets;
  const std::string& path = file.file().path();
  bool found = false;
  std::string elsewhere;  // what stands on other levels
  for (std::size_t c = 0; c < targets.size(); ++c) {
    const std::optional<FieldPlace> place = file.find(targets[c].field);
    if (!place || place->channel >= 0) continue;
    const FileVariable& variable = *place->variable;
    const std::string what = concat(targets[c].name, " in ", path);
    if (file.axes(variable).cells < 0) {
      throw DataError(concat(what,
                             " is no series at stations, for it does not lie along a dimension of which one ",
                             "variable holds latitudes and another one longitudes"));
    }
    if (!position_of_level(what, file, variable, targets[c].field)) {
      elsewhere = what;
      continue;
    }
    found = true;
    const UnitConversion convert = conversion(static_cast<int>(c), what, variable.text("units"));
    require_same_kind(what, file, variable, data_.files(), targets[c].field);
    remark_once(static_cast<int>(c), Remark::kHours, remark_on_hours(what, file, variable, targets[c].field));
    read(file, variable, static_cast<int>(c), convert);
  }
  if (found) return;
  if (!elsewhere.empty()) throw DataError(elsewhere + " stands on none of the levels that are scored");
  throw DataError(concat("--stations: ", path, " holds none of the variables that are scored, such as ",
                         targets.front().name));
}

/// Of values in a unit, "" where none is said, to that of the data.
UnitConversion StationObservations::conversion(int channel, const std::string& what, const std::string& unit,
                                               const std::string& advice) {
  const Field& field = data_.channels().targets[static_cast<std::size_t>(channel)].field;
  const std::string wanted = data_.files().units(field);
  std::optional<UnitConversion> known = unit_conversion(unit, wanted);
  if (!known) {
    const std::string remark = require_same_unit(what, unit, wanted);
    remark_once(channel, Remark::kUnit, remark.empty() ? "" : remark + advice);
    return {};
  }
  if (is_of_differences(data_.files().describe(field).texts)) known->offset = 0;
  if (*known != UnitConversion{})
    remark_once(channel, Remark::kUnit,
                concat(what, " is in \"", unit, "\", and is brought to \"", wanted, "\""));
  return *known;
}

/// Of the first file of a channel that gives rise to it; "" says nothing.
void StationObservations::remark_once(int channel, Remark kind, const std::string& remark) {
  if (!remark.empty() && remarked_.insert({channel, kind}).second) remarks_.push_back(remark);
}

/// Sums and means are compared with those over as long a time.
std::string StationObservations::remark_on_hours(const std::string& what, DataFile& file,
                                                 const FileVariable& variable, const Field& field) {
  const std::optional<Period> there = limits_of(file, variable);
  require_same_limits(what, there, limits_of(data_.files(), field));
  return there ? "" : hours_remark(what, field);
}

/// What observations of sums and means do not say, where the data do.
std::string StationObservations::hours_remark(const std::string& what, const Field& field) {
  const std::optional<Period> wanted = limits_of(data_.files(), field);
  const auto& texts = data_.files().describe(field).texts;
  const auto said = texts.find("cell_methods");
  const bool is_over_time = said != texts.end() && !method_along(said->second, "time").empty();
  if (!wanted || !is_over_time) return "";
  return concat(what,
                " does not say over how long its values are (by bounds of its times), and the data are over ",
                hours_in(*wanted), " h");
}

/// The first and behind the last position of times that are wanted.
std::pair<std::int64_t, std::int64_t> StationObservations::rows_of(const std::vector<Time>& times) {
  std::int64_t first = std::ssize(times), end = 0;
  for (std::int64_t i = 0; i < std::ssize(times); ++i) {
    if (!note_time(times[static_cast<std::size_t>(i)])) continue;
    first = std::min(first, i);
    end = i + 1;
  }
  return {first, std::max(first, end)};
}

void StationObservations::read(DataFile& file, const FileVariable& variable, int channel,
                               const UnitConversion& convert) {
  const Channel& target = data_.channels().targets[static_cast<std::size_t>(channel)];
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
  if (file.calendar(dimension) != data_.files().file_calendar()) {
    throw DataError(concat(what, " counts in the calendar ", file.calendar_name(dimension),
                           ", and the data in ", data_.files().calendar_name()));
  }
  observed_[channel];
  const NamedPlaces listed = places_of(file, variable);
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < listed.size(); ++i)
    places.push_back(add_place(listed.names[i], listed.latitudes[i], listed.longitudes[i]));
  const std::vector<Time>& times = file.times(dimension);
  const auto [first, end] = rows_of(times);
  Box box{Shape::filled(variable.shape.rank(), 0), Shape::filled(variable.shape.rank(), 1)};
  box.begin[axes.time] = first < end ? first : 0;
  box.extent[axes.time] = end - first;
  box.extent[axes.cells] = variable.shape[axes.cells];
  if (axes.level >= 0) box.begin[axes.level] = *position_of_level(what, file, variable, target.field);
  if (box.empty()) return;
  std::vector<float> values(static_cast<std::size_t>(box.extent.count()));
  file.file().read<float>(variable, box, values);
  const auto rows = static_cast<std::size_t>(end - first), width = places.size();
  const bool places_first = axes.cells < axes.time;
  for (std::size_t row = 0; row < rows; ++row) {
    const Time time = times[static_cast<std::size_t>(first) + row];
    for (std::size_t place = 0; place < width; ++place) {
      const float value = places_first ? values[place * rows + row] : values[row * width + place];
      add(channel, time, places[place], static_cast<float>(convert(value)));
    }
  }
}

std::vector<StationObservations::Column> StationObservations::columns_of(const TextTable& table) {
  const std::vector<Channel>& targets = data_.channels().targets;
  std::vector<Column> columns;
  for (std::size_t number = 0; number < table.columns().size(); ++number) {
    const auto [name, unit] = name_and_unit(table.columns()[number]);
    const auto target = std::ranges::find(targets, name, &Channel::name);
    if (target == targets.end()) {
      remark_on_title(table.columns()[number]);
      continue;
    }
    const auto channel = static_cast<int>(target - targets.begin());
    if (std::ranges::any_of(columns, [&](const Column& known) { return known.channel == channel; }))
      table.refuse(concat("two columns hold ", name));
    remark_once(channel, Remark::kHours, hours_remark(name + " in " + table.path(), target->field));
    columns.push_back({channel, number,
                       conversion(channel, name + " in " + table.path(), unit,
                                  concat("; a column \"", name, " [unit]\" would say it"))});
  }
  if (columns.empty()) {
    table.refuse(concat("--stations: no column is called as a variable that is scored, such as ",
                        targets.front().name));
  }
  return columns;
}

/// Of a column that is called nearly as a variable that is scored, and not read.
void StationObservations::remark_on_title(const std::string& title) {
  const std::string lower = to_lower(title);
  for (const Channel& target : data_.channels().targets) {
    const std::string name = to_lower(target.name);
    const bool goes_on = lower.size() > name.size() &&
                         std::string_view(" (_").find(lower[name.size()]) != std::string_view::npos;
    if (!lower.starts_with(name) || (lower.size() != name.size() && !goes_on)) continue;
    remarks_.push_back(concat("--stations: the column ", printable(title), " is not read; one of ",
                              target.name, " is called ", target.name, " or \"", target.name, " [unit]\""));
    return;
  }
}

void StationObservations::look_into_table(const std::string& path) {
  if (data_.files().file_calendar() != Calendar::kStandard)
    throw DataError(
        concat(path, " counts in the standard calendar, and the data in ", data_.files().calendar_name()));
  TextTable table(path);
  const PlaceColumns place_columns(table);
  const std::optional<std::size_t> time_column =
      table.column({"time", "valid_time", "date", "datetime", "timestamp"});
  if (!time_column)
    table.refuse(
        "--stations: the first line must name a column time, of times in UTC such as 2021-02-20T06:00");
  const std::vector<Column> columns = columns_of(table);
  for (const Column& column : columns) observed_[column.channel];
  while (table.next()) {
    NamedPlaces one;
    place_columns.add(table, one);
    const Time time = time_in(table, *time_column);
    if (!note_time(time)) continue;
    const std::string name =
        place_columns.have_names() ? one.names[0] : concat(one.latitudes[0], " ", one.longitudes[0]);
    const std::size_t place = add_place(name, one.latitudes[0], one.longitudes[0]);
    for (const Column& column : columns)
      add(column.channel, time, place,
          static_cast<float>(column.convert(table.number_or_nan(column.number))));
  }
}

std::size_t StationObservations::add_place(const std::string& name, double latitude, double longitude) {
  constexpr double kSamePlace = 0.01;  // degrees, about a kilometre
  std::vector<std::size_t>& of_name = known_[name];
  for (const std::size_t known : of_name) {
    const double apart =
        std::abs(on_circle(places_.longitudes[known] - longitude + kCircle / 2) - kCircle / 2);
    if (std::abs(places_.latitudes[known] - latitude) <= kSamePlace && apart <= kSamePlace) return known;
  }
  of_name.push_back(places_.size());
  places_.names.push_back(name);
  places_.latitudes.push_back(latitude);
  places_.longitudes.push_back(longitude);
  return of_name.back();
}

/// The nearest time of forecasts, of two as near the earlier one; nothing where none is near enough.
std::optional<Time> StationObservations::counts_at(Time time) const {
  const auto later = std::ranges::lower_bound(times_, time);
  std::optional<Time> nearest;
  if (later != times_.begin()) nearest = *std::prev(later);
  if (later != times_.end() && (!nearest || *later - time < time - *nearest)) nearest = *later;
  return nearest && std::abs(*nearest - time) <= tolerance_ ? nearest : std::nullopt;
}

void StationObservations::add(int channel, Time time, std::size_t place, float value) {
  if (!wanted_.contains(time) || !std::isfinite(value)) return;
  Observed& observed = observed_[channel];
  observed.places.resize(std::max(observed.places.size(), place + 1));
  observed.places[place] = true;
  if (const std::optional<Time> at = counts_at(time)) {
    observed.at[*at].push_back(
        {static_cast<std::uint32_t>(place), value, static_cast<std::int32_t>(time - *at)});
  }
}

/// Orders what was observed by place, and takes of each what is nearest to the time. Where there are several
/// values of one place and time these are equal.
void StationObservations::bring_together() {
  const auto order = [](const Observation& one) {
    return std::tuple(one.place, std::abs(one.later), one.later);
  };
  for (auto& [channel, observed] : observed_) {
    observed.places.resize(places_.size());
    for (auto& [time, all] : observed.at) {
      std::ranges::stable_sort(all, {}, order);
      for (std::size_t i = 1; i < all.size(); ++i) {
        if (order(all[i]) != order(all[i - 1]) || all[i].value == all[i - 1].value) continue;
        throw DataError(concat("--stations hold different values of ",
                               data_.channels().targets[static_cast<std::size_t>(channel)].name, " at ",
                               printable(places_.names[all[i].place]), ", ",
                               data_.files().text_of(time + all[i].later), ": ", all[i - 1].value, " and ",
                               all[i].value));
      }
      const auto same_place = [](const Observation& a, const Observation& b) { return a.place == b.place; };
      all.erase(std::unique(all.begin(), all.end(), same_place), all.end());
    }
  }
}

std::vector<double> StationObservations::at(int channel, Time time) const {
  std::vector<double> values(places_.size(), std::numeric_limits<double>::quiet_NaN());
  const auto of_channel = observed_.find(channel);
  if (of_channel == observed_.end()) return values;
  const auto found = of_channel->second.at.find(time);
  if (found == of_channel->second.at.end()) return values;
  for (const Observation& one : found->second) values[one.place] = one.value;
  return values;
}

bool StationObservations::observes(int channel, std::size_t place) const {
  const auto of_channel = observed_.find(channel);
  return of_channel != observed_.end() && of_channel->second.places[place];
}

}  // namespace jigsaw::inline evaluate
