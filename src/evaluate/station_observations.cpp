#include "evaluate/station_observations.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/error.h"
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
  return {name, title.substr(bracket + 1, title.size() - bracket - 2)};
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
                                         Dataset& data, const Period& wanted)
    : data_(data), wanted_(wanted) {
  data.files().require_dates("--stations");
  for (const std::string& path : paths) {
    if (!is_variable_file(path)) {
      look_into_table(path);
      continue;
    }
    DataFile file(open(path));
    look_into(file);
  }
  for (const auto& [channel, series] : series_) channels_.push_back(channel);
  const bool any = std::ranges::any_of(series_, [](const auto& of_channel) {
    return std::ranges::any_of(of_channel.second, [](const Series& series) { return !series.times.empty(); });
  });
  if (!any) refuse_period();
  require_agreement();
}

void StationObservations::refuse_period() const {
  const std::string wanted =
      concat("--stations: nothing was observed from ", data_.files().text_of(wanted_.first), " to ",
             data_.files().text_of(wanted_.last), ", which the forecasts are of");
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
    found = true;
    if (!position_of_level(what, file, variable, targets[c].field)) continue;
    const std::string remark =
        require_same_unit(what, variable.text("units"), data_.files().units(targets[c].field));
    if (!remark.empty()) remarks_.push_back(remark);
    require_same_kind(what, file, variable, data_.files(), targets[c].field);
    remark_on_hours(what, file, variable, targets[c].field);
    series_[static_cast<int>(c)].push_back(read(file, variable, targets[c]));
  }
  if (found) return;
  throw DataError(concat("--stations: ", path, " holds none of the variables that are scored, such as ",
                         targets.front().name));
}

/// Sums and means are compared with those over as long a time.
void StationObservations::remark_on_hours(const std::string& what, DataFile& file,
                                          const FileVariable& variable, const Field& field) {
  const double there = hours_of(file, variable), wanted = hours_of(data_.files(), field);
  require_same_hours(what, there, wanted);
  const auto& texts = data_.files().describe(field).texts;
  const auto said = texts.find("cell_methods");
  const bool is_over_time = said != texts.end() && !method_along(said->second, "time").empty();
  if (there == 0 && wanted > 0 && is_over_time)
    remarks_.push_back(concat(
        what, " does not say over how long its values are (by bounds of its times), and the data are over ",
        wanted, " h"));
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

StationObservations::Series StationObservations::read(DataFile& file, const FileVariable& variable,
                                                      const Channel& target) {
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
  Series series;
  series.path = file.file().path();
  const NamedPlaces places = places_of(file, variable);
  for (std::size_t i = 0; i < places.size(); ++i)
    series.places.push_back(add_place(places.names[i], places.latitudes[i], places.longitudes[i]));
  const std::vector<Time>& times = file.times(dimension);
  const auto [first, end] = rows_of(times);
  Box box{Shape::filled(variable.shape.rank(), 0), Shape::filled(variable.shape.rank(), 1)};
  box.begin[axes.time] = first < end ? first : 0;
  box.extent[axes.time] = end - first;
  box.extent[axes.cells] = variable.shape[axes.cells];
  if (axes.level >= 0) box.begin[axes.level] = *position_of_level(what, file, variable, target.field);
  if (box.empty()) return series;
  std::vector<float> values(static_cast<std::size_t>(box.extent.count()));
  file.file().read<float>(variable, box, values);
  const auto rows = static_cast<std::size_t>(end - first), width = series.places.size();
  const bool places_first = axes.cells < axes.time;
  series.values.resize(values.size());
  for (std::size_t row = 0, kept = 0; row < rows; ++row) {
    const Time time = times[static_cast<std::size_t>(first) + row];
    const auto value = [&](std::size_t place) {
      return places_first ? values[place * rows + row] : values[row * width + place];
    };
    const auto [known, added] = series.times.insert({time, kept});
    kept += added ? 1 : 0;
    for (std::size_t place = 0; place < width; ++place) {
      float& here = series.values[known->second * width + place];
      const bool same = here == value(place) || (std::isnan(here) && std::isnan(value(place)));
      if (!added && !same)
        throw DataError(concat(what, " holds ", data_.files().text_of(time), " twice, with other values"));
      here = value(place);
    }
  }
  return series;
}

std::vector<StationObservations::Column> StationObservations::columns_of(const TextTable& table) {
  const std::vector<Channel>& targets = data_.channels().targets;
  std::vector<Column> columns;
  for (std::size_t number = 0; number < table.columns().size(); ++number) {
    const auto [name, unit] = name_and_unit(table.columns()[number]);
    const auto target = std::ranges::find(targets, name, &Channel::name);
    if (target == targets.end()) continue;
    columns.push_back({static_cast<int>(target - targets.begin()), number});
    const std::string remark =
        require_same_unit(table.place() + ", " + name, unit, data_.files().units(target->field));
    if (!remark.empty()) remarks_.push_back(concat(remark, "; \"", name, " [unit]\" would say it"));
  }
  if (columns.empty()) {
    table.refuse(concat("--stations: no column is called as a variable that is scored, such as ",
                        targets.front().name));
  }
  return columns;
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
  struct Line {
    Time time;
    std::size_t place;
    std::vector<float> values;
  };
  std::vector<Line> lines;
  std::map<Time, std::size_t> rows;
  std::map<std::size_t, std::size_t> numbers;  // by place, those in the table
  while (table.next()) {
    NamedPlaces one;
    place_columns.add(table, one);
    const Time time = time_in(table, *time_column);
    if (!note_time(time)) continue;
    Line line{time, add_place(one.names[0], one.latitudes[0], one.longitudes[0]), {}};
    for (const Column& column : columns)
      line.values.push_back(static_cast<float>(table.number_or_nan(column.number)));
    rows.insert({time, rows.size()});
    numbers.insert({line.place, numbers.size()});
    lines.push_back(std::move(line));
  }
  for (std::size_t c = 0; c < columns.size(); ++c) {
    Series series{path, rows, std::vector<std::size_t>(numbers.size()),
                  std::vector<float>(rows.size() * numbers.size(), std::numeric_limits<float>::quiet_NaN())};
    for (const auto& [place, number] : numbers) series.places[number] = place;
    for (const Line& line : lines) {
      float& value = series.values[rows.at(line.time) * numbers.size() + numbers.at(line.place)];
      if (std::isfinite(value) && std::isfinite(line.values[c]) && value != line.values[c]) {
        throw DataError(concat(path, " holds different values at ", printable(places_.names[line.place]),
                               ", ", data_.files().text_of(line.time), ": ", value, " and ", line.values[c]));
      }
      if (std::isfinite(line.values[c])) value = line.values[c];
    }
    series_[columns[c].channel].push_back(std::move(series));
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

/// Files that hold the same place and time hold the same values there.
void StationObservations::require_agreement() const {
  for (const auto& [channel, all] : series_) {
    std::map<std::pair<Time, std::size_t>, std::pair<float, const Series*>> known;
    for (const Series& series : all) {
      if (all.size() == 1) break;
      for (const auto& [time, row] : series.times) {
        for (std::size_t i = 0; i < series.places.size(); ++i) {
          const float value = series.values[row * series.places.size() + i];
          if (!std::isfinite(value)) continue;
          const auto [other, added] = known.insert({{time, series.places[i]}, {value, &series}});
          if (added || other->second.first == value) continue;
          throw DataError(concat(other->second.second->path, " and ", series.path,
                                 " hold different values of ",
                                 data_.channels().targets[static_cast<std::size_t>(channel)].name, " at ",
                                 printable(places_.names[series.places[i]]), ", ",
                                 data_.files().text_of(time), ": ", other->second.first, " and ", value));
        }
      }
    }
  }
}

std::vector<double> StationObservations::at(int channel, Time time) const {
  std::vector<double> values(places_.size(), std::numeric_limits<double>::quiet_NaN());
  const auto of_channel = series_.find(channel);
  if (of_channel == series_.end()) return values;
  for (const Series& series : of_channel->second) {
    const auto row = series.times.find(time);
    if (row == series.times.end()) continue;
    const float* const from = series.values.data() + row->second * series.places.size();
    for (std::size_t i = 0; i < series.places.size(); ++i)
      if (std::isfinite(from[i])) values[series.places[i]] = from[i];
  }
  return values;
}

bool StationObservations::observes(int channel, std::size_t place) const {
  const auto of_channel = series_.find(channel);
  if (of_channel == series_.end()) return false;
  return std::ranges::any_of(of_channel->second, [&](const Series& series) {
    const std::size_t width = series.places.size();
    for (std::size_t i = 0; i < width; ++i) {
      if (series.places[i] != place) continue;
      for (std::size_t row = 0; row < series.times.size(); ++row)
        if (std::isfinite(series.values[row * width + i])) return true;
    }
    return false;
  });
}

}  // namespace jigsaw::inline evaluate
