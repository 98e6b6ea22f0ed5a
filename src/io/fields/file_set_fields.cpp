// Where fields stand in the files of a set: variables, levels and versions.
#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "fields/file_set.h"
#include "fields/sort_unique.h"
#include "fields/units.h"
#include "files/coordinate_units.h"
#include "files/value_kinds.h"

namespace jigsaw::inline fields {

const std::string& FileSet::dimension(const FileVariable& variable, int axis) {
  return variable.dimensions[static_cast<std::size_t>(axis)];
}

namespace {

/// The name of a variable of GRIB messages with its kind of level before it, where another file has it so.
std::string name_among(const std::set<std::string>& grouped, const std::string& name,
                       const FileVariable& variable) {
  const std::string level = variable.text(kTypeOfLevel);
  if (level.empty() || name.find('/') != std::string::npos) return name;
  for (const std::string& kind : {level, concat(level, "_", variable.text(kStepType))})
    if (std::string whole = concat(kind, "/", name); grouped.contains(whole)) return whole;
  return name;
}

}  // namespace

/// Of all files.
std::set<std::string> FileSet::names_in_groups() const {
  std::set<std::string> names;
  for (const auto& file : files_)
    for (const FileVariable& variable : file->file().variables())
      if (variable.name.find('/') != std::string::npos) names.insert(variable.name);
  return names;
}

std::vector<VariableSummary> FileSet::catalogue() {
  const std::lock_guard lock(mutex_);
  std::map<std::string, VariableSummary> summaries;
  const std::set<std::string> grouped = names_in_groups();
  std::map<std::string, std::vector<double>> heights;  // of fields at one height or level in each file
  for (int f = 0; f < static_cast<int>(files_.size()); ++f) {
    DataFile& file = use(f);
    for (const FileVariable& variable : file.file().variables()) {
      const FieldAxes axes = file.axes(variable);
      if (!variable.numeric() || !axes.horizontal()) continue;
      const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
      for (const std::string& own : names_in(file, variable)) {
        const std::string name = name_among(grouped, own, variable);
        VariableSummary& summary = summaries[name];
        summary.name = name;
        summary.units = variable.text("units");
        summary.long_name = variable.text("long_name");
        summary.standard_name = variable.text("standard_name");
        summary.flags = variable.holds_flags();
        try {
          if (axes.level >= 0) {
            append(file.at_one_height(variable) ? heights[name] : summary.levels,
                   file.coordinates(dimension(variable, axes.level)));
          } else if (const std::optional<double> level = file.level_of(variable)) {
            heights[name].push_back(*level);
          }
        } catch (const DataError& error) {
          summary.fault = error.what();
        }
        try {
          if (const auto times = file.times_of(variable, axes)) {
            append(summary.times, times_in(f, *times));
            summary.calendar = of_months() ? calendar() : file.calendar(*times);
          }
        } catch (const DataError&) {
          if (axes.time >= 0) throw;
          // A scalar of no use is no time.
        }
      }
    }
  }
  std::vector<VariableSummary> result;
  const auto sort_levels = [](std::vector<double>& levels) {
    std::sort(levels.begin(), levels.end());
    levels.erase(std::unique(levels.begin(), levels.end(), same_level), levels.end());
  };
  for (auto& [name, summary] : summaries) {
    // A level in each file is a level; one in all of them goes without saying.
    sort_levels(heights[name]);
    if (heights[name].size() > 1)
      summary.levels.insert(summary.levels.end(), heights[name].begin(), heights[name].end());
    sort_levels(summary.levels);
    sort_unique(summary.times);
    result.push_back(std::move(summary));
  }
  return result;
}

std::vector<std::string> FileSet::series_in_time() {
  const std::lock_guard lock(mutex_);
  std::set<std::string> names;
  for (int f = 0; f < static_cast<int>(files_.size()); ++f) {
    const std::vector<std::string> found = series_of(use(f));
    names.insert(found.begin(), found.end());
  }
  return {names.begin(), names.end()};
}

std::vector<std::string> FileSet::series_of(const DataFile& file) {
  std::vector<std::string> names;
  for (const FileVariable& variable : file.file().variables()) {
    if (!variable.numeric() || variable.shape.rank() != 1 || file.axes(variable).time < 0) continue;
    const bool times = variable.name == dimension(variable, 0) || counts_since(variable.text("units")) ||
                       variable.text("standard_name") == "forecast_period";
    if (!times) names.push_back(variable.name);
  }
  return names;
}

/// Another variable that is read is none by one of its usual names.
std::optional<FieldPlace> FileSet::find_in(int f, const Field& field) {
  DataFile& file = use(f);
  const VariableSources& sources = selection_.sources;
  if (!sources.may_hold(file.file().path(), field.variable)) return std::nullopt;
  const std::string& name = sources.name_of(field.variable);
  std::optional<FieldPlace> place = file.find({name, field.level});
  const std::string found = place ? without_groups(place->variable->name) : "";
  if (found != without_groups(name) && sources.names.contains(found)) return std::nullopt;
  return place;
}

std::vector<FileSet::Part> FileSet::find_parts(const Field& field, bool uniform) {
  std::vector<Part> parts;
  bool known = false, of_lead = false;
  const std::optional<Time> lead = selection_.sources.lead_of(field.variable);
  for (int f = 0; f < static_cast<int>(files_.size()); ++f) {
    const std::optional<FieldPlace> place = find_in(f, field);
    if (!place) continue;
    known = true;
    DataFile& file = use(f);
    Part part;
    part.file = f;
    part.variable = place->variable;
    part.axes = file.axes(*place->variable);
    std::vector<std::string> free = selection_.free_dimensions;
    if (lead) {
      if (!take_lead(part, *lead)) continue;
      of_lead = true;
      for (const int axis : {part.axes.time, part.lead_axis})
        if (axis >= 0) free.push_back(without_groups(dimension(*part.variable, axis)));
    }
    file.require_field(*place->variable, free, uniform);
    if (uniform && part.axes.horizontal() && part.axes.plane_of(part.variable->shape).count() == 1)
      part.axes.latitude = part.axes.longitude = part.axes.cells = -1;  // a series on a grid of one point
    part.channel = std::max<std::int64_t>(place->channel, 0);
    part.versions = versions_of(part);
    if (part.axes.channel >= 0) {
      // The channel's name has said which level it is.
      if (place->channel < 0) refuse_channels(part);
      parts.push_back(part);
      continue;
    }
    if (find_level(field, part)) parts.push_back(part);
  }
  if (!known) refuse_unknown(field.variable, uniform);
  if (lead && !of_lead) refuse_lead(field, *lead);
  if (parts.empty()) refuse_level(field);
  find_members(field, parts);
  for (const Part& part : parts) note_member(part);
  return parts;
}

std::optional<std::string> FileSet::cell_area_variable() {
  const std::lock_guard lock(mutex_);
  constexpr std::array kNames = {"areacello", "areacella", "cell_area", "TAREA", "area"};
  std::size_t best = kNames.size() + 1;  // of what has the standard_name one more than the last
  std::optional<std::string> found;
  for (int f = 0; f < static_cast<int>(files_.size()); ++f) {
    DataFile& file = use(f);
    for (const FileVariable& variable : file.file().variables()) {
      const FieldAxes axes = file.axes(variable);
      if (!variable.numeric() || !axes.horizontal() || axes.level >= 0 || axes.channel >= 0) continue;
      const auto name = std::ranges::find(kNames, variable.name);
      auto rank = static_cast<std::size_t>(name - kNames.begin());
      if (variable.name == "area" && !same_unit(variable.text("units"), "m2")) rank = kNames.size();
      if (rank == kNames.size() && variable.text("standard_name") != "cell_area") continue;
      if (rank >= best) continue;
      best = rank;
      found = variable.name;
    }
  }
  return found;
}

/// Their positions by their numbers: the final analysis is 1, the preliminary one 5.
std::vector<std::int64_t> FileSet::versions_of(const Part& part) {
  if (part.axes.version < 0) return {};
  const std::int64_t count = part.variable->shape[part.axes.version];
  std::vector<std::int64_t> positions(static_cast<std::size_t>(count));
  std::iota(positions.begin(), positions.end(), 0);
  if (count < 2) return positions;
  const std::vector<double>& numbers =
      use(part.file).coordinates(dimension(*part.variable, part.axes.version));
  std::sort(positions.begin(), positions.end(), [&](std::int64_t a, std::int64_t b) {
    return numbers[static_cast<std::size_t>(a)] < numbers[static_cast<std::size_t>(b)];
  });
  return positions;
}

/// Whether the part has the level, whose position is set.
bool FileSet::find_level(const Field& field, Part& part) {
  if (part.axes.level < 0) {
    if (!field.level) return true;
    const std::optional<double> level = use(part.file).level_of(*part.variable);
    return level && same_level(*level, *field.level);
  }
  const std::string& name = dimension(*part.variable, part.axes.level);
  const std::int64_t extent = part.variable->shape[part.axes.level];
  if (!field.level) return extent == 1;
  const std::vector<double>& levels = use(part.file).coordinates(name);
  const auto found = std::find_if(levels.begin(), levels.end(),
                                  [&](double level) { return same_level(level, *field.level); });
  part.level = found - levels.begin();
  return found != levels.end();
}

/// The level of a part that has one alone, as a scalar coordinate or, of GRIB, along a dimension.
std::optional<double> FileSet::single_level(const Part& part) {
  DataFile& file = use(part.file);
  const bool along = part.axes.level >= 0 && !part.variable->text(kTypeOfLevel).empty();
  if (!along) return file.level_of(*part.variable);
  return file.coordinates(dimension(*part.variable, part.axes.level)).front();
}

/// Files of one level each hold several fields of one variable and time; of GRIB those on levels and at the
/// surface have one name.
void FileSet::require_one_level(const Field& field, const std::vector<Part>& parts) {
  if (field.level) return;
  std::optional<double> known;
  std::optional<bool> of_levels;
  for (const Part& part : parts) {
    const std::optional<double> level = single_level(part);
    if (level && known && !same_level(*level, *known)) refuse_level(field);
    if (level) known = level;
    if (part.variable->text(kTypeOfLevel).empty()) continue;
    if (of_levels && *of_levels != level.has_value()) refuse_level(field);
    of_levels = level.has_value();
  }
}

/// The names that a variable holds: its own, or those of its channels.
std::vector<std::string> FileSet::names_in(DataFile& file, const FileVariable& variable) {
  const int axis = file.axes(variable).channel;
  return axis < 0 ? std::vector{variable.name} : file.names(dimension(variable, axis));
}

void FileSet::refuse_channels(const Part& part) {
  DataFile& file = use(part.file);
  throw DataError(
      concat(part.variable->name, " in ", file.file().path(),
             " holds channels, which are named in its place: ", join(names_in(file, *part.variable), ", ")));
}

/// @param uniform  whether it might be a series in time without places.
void FileSet::refuse_unknown(const std::string& variable, bool uniform) const {
  std::set<std::string> names, series;
  std::vector<std::string> paths;
  const std::string& name = selection_.sources.name_of(variable);
  for (const auto& file : files_) {
    if (!selection_.sources.may_hold(file->file().path(), variable)) continue;
    paths.push_back(file->file().path());
    if (uniform) std::ranges::copy(series_of(*file), std::inserter(series, series.end()));
    for (const FileVariable& candidate : file->file().variables()) {
      if (!candidate.numeric() && candidate.name == name)
        throw DataError(concat(name, " in ", paths.back(), " cannot be used: ",
                               candidate.fault.empty() ? "it holds no numbers" : candidate.fault));
      if (!candidate.numeric() || !file->axes(candidate).horizontal()) continue;
      for (const std::string& known : names_in(*file, candidate)) names.insert(known);
    }
  }
  const std::vector<std::string> known(names.begin(), names.end());
  std::vector<std::string> all = known;
  all.insert(all.end(), series.begin(), series.end());
  throw DataError(concat(
      "no variable ", name, " in ", first_and_more(paths.front(), std::ssize(paths) - 1, "file"),
      did_you_mean(name, all), "; fields there: ", known.empty() ? "none" : join(known, ", "),
      series.empty() ? ""
                     : concat("; series in time: ", join(std::vector(series.begin(), series.end()), ", "))));
}

void FileSet::refuse_level(const Field& field) {
  std::vector<double> levels;
  std::string path;
  for (int f = 0; f < static_cast<int>(files_.size()); ++f) {
    DataFile* file = &use(f);
    const std::optional<FieldPlace> place = find_in(f, field);
    if (!place) continue;
    const FileVariable* variable = place->variable;
    path = file->file().path();
    const int axis = file->axes(*variable).level;
    if (axis < 0) {
      if (const std::optional<double> level = file->level_of(*variable)) levels.push_back(*level);
      continue;
    }
    const std::vector<double>& found = file->coordinates(dimension(*variable, axis));
    levels.insert(levels.end(), found.begin(), found.end());
  }
  sort_unique(levels);
  if (levels.empty()) {
    throw DataError(concat(field.variable, " in ", path, " has no levels, but the level ", *field.level,
                           " is asked for"));
  }
  const std::string there = concat("; levels there: ", join(levels, ", "));
  if (!field.level)
    throw DataError(concat(field.variable, " in ", path, " has levels; name those that you want", there));
  throw DataError(concat(field.variable, " in ", path, " has no level ", *field.level, there));
}

/// One state of a field has to fit into memory.
void FileSet::check_memory(const Part& part) {
  require_memory(part.axes.plane_of(part.variable->shape), part.variable->name, use(part.file).file().path());
}

/// All times are of one calendar, but for those of what is given between them.
void FileSet::check_calendar(int number, const std::string& times) {
  DataFile& file = use(number);
  const Calendar found = file.calendar(times);
  if (!calendar_) {
    calendar_ = found;
    calendar_file_ = file.file().path();
    calendar_name_ = file.calendar_name(times);
  } else if (*calendar_ != found) {
    throw DataError(concat(file.file().path(), " counts time in the calendar ", file.calendar_name(times),
                           ", and ", calendar_file_, " in ", calendar_name_,
                           "; all files must have one calendar, but for data.forcing_variables whose "
                           "`times` are \"latest\", \"linear\" or \"hold\""));
  }
  if (of_months()) require_dates("data.time_step \"month\"");
}

std::string FileSet::check_units(const Field& field, const std::vector<Part>& parts) const {
  std::string units = parts[0].variable->text("units");
  for (const Part& part : parts) {
    const std::string other = part.variable->text("units");
    if (same_unit(other, units)) continue;
    const auto path = [&](const Part& p) { return files_[static_cast<std::size_t>(p.file)]->file().path(); };
    if (units.empty() || other.empty()) {
      const Part &with = units.empty() ? part : parts[0], &without = units.empty() ? parts[0] : part;
      throw DataError(concat(field.variable, " is in \"", units.empty() ? other : units, "\" in ", path(with),
                             ", and ", path(without),
                             " says no unit of it; write its attribute units, as ncatted does"));
    }
    throw DataError(concat(field.variable, " is in \"", units, "\" in ", path(parts[0]), " and in \"", other,
                           "\" in ", path(part), "; it must have one unit"));
  }
  return units;
}

/// How the values of a part were made in time, as its file says by cell_methods; "" where it does not.
std::string FileSet::method_of(const Part& part) const {
  const std::string said = part.variable->text("cell_methods");
  std::string method = method_along(said, "time");
  if (!method.empty() || said.empty()) return method;
  const auto times = files_[static_cast<std::size_t>(part.file)]->times_of(*part.variable, part.axes);
  return times ? method_along(said, without_groups(*times)) : "";
}

/// States, means and sums over some time are no series together, nor are sums over hours and days.
void FileSet::check_methods(const Field& field, const std::vector<Part>& parts) const {
  const auto path = [&](const Part& p) { return files_[static_cast<std::size_t>(p.file)]->file().path(); };
  const auto refuse = [&](const Part& one, const Part& other, const std::string& here,
                          const std::string& there) {
    throw DataError(concat(field.name(), " in ", path(one), " is ", here, ", and in ", path(other), " ",
                           there,
                           "; leave one of the files out, or make of them two variables in data.variables, "
                           "each with `files` of its own"));
  };
  const Part *said = nullptr, *ranged = nullptr;
  for (const Part& part : parts) {
    const std::string method = method_of(part);
    if (!method.empty()) {
      if (said == nullptr) said = &part;
      const std::string known = method_of(*said);
      if (method != known)
        refuse(*said, part, concat("of the method \"", known, "\" in time (cell_methods)"),
               concat("of \"", method, "\""));
    }
    const double hours = time_range(*part.variable);
    if (hours <= 0) continue;
    if (ranged == nullptr) ranged = &part;
    const double known = time_range(*ranged->variable);
    if (!same_time_range(hours, known))
      refuse(*ranged, part, concat("over ", known, " hours each"), concat("over ", hours));
  }
}

std::optional<std::string> FileSet::file_without_time(const Field& field) {
  const std::lock_guard lock(mutex_);
  for (int f = 0; f < static_cast<int>(files_.size()); ++f) {
    DataFile& file = use(f);
    const std::optional<FieldPlace> place = find_in(f, field);
    if (place && !file.times_of(*place->variable, file.axes(*place->variable))) return file.file().path();
  }
  return std::nullopt;
}

void FileSet::refuse_timeless(const Field& field, const std::vector<Part>& parts, const Part& timeless) {
  const bool others =
      std::ranges::any_of(parts, [&](const Part& part) { return said_times(part).has_value(); });
  throw DataError(
      concat(field.name(), " in ", use(timeless.file).file().path(), " has no time",
             others ? ", as it has in other files: leave the file out, or write it with its time; " : "; ",
             "a constant field belongs into data.static"));
}

std::optional<FileSet::Lacking> FileSet::first_file_without(const Field& field, const Period& period) const {
  const Series& own = series(field);
  std::set<int> with;
  for (const Part& part : own.parts) with.insert(part.file);
  std::optional<Lacking> first;
  for (const auto& [other, source] : series_) {
    const auto beside = [&](const Part& part) { return with.contains(part.file); };
    if (!source.has_time || source.between != Between::kNothing || !std::ranges::any_of(source.parts, beside))
      continue;
    const std::vector<Time>& times = source.index->times;
    for (auto time = std::ranges::lower_bound(times, period.first); time != times.end(); ++time) {
      if (*time > period.last || (first && *time >= first->time)) break;
      const Part& part = source.parts[static_cast<std::size_t>(
          source.index->entries[static_cast<std::size_t>(time - times.begin())].part)];
      if (with.contains(part.file) || has(field, *time)) continue;
      first = {files_[static_cast<std::size_t>(part.file)]->file().path(), other.name(), *time};
      break;
    }
  }
  return first;
}

std::vector<Period> FileSet::periods(const std::vector<DataPart>& parts, const std::string& key) const {
  std::vector<Period> periods = periods_of(parts, file_calendar(), key);
  for (Period& period : periods) {
    if (!of_months()) continue;
    const Time half = kMonth / 2;  // month_of() is the middle
    period = {month_of(period.first, file_calendar()) - half,
              month_of(period.last, file_calendar()) + half - 1};
  }
  return periods;
}

std::string FileSet::text_of(Time time) const {
  const std::string text = format_time(time, calendar());
  return of_months() ? text.substr(0, text.rfind('-')) : text;
}

std::string FileSet::text_of(const Period& period) const {
  if (!of_months()) return format_period(period, calendar());
  return concat(text_of(period.first), " to ", text_of(period.last));
}

}  // namespace jigsaw::inline fields
