#include "predict/forecast_choice.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"
#include "predict/calendar_means.h"
#include "predict/forecast_file.h"
#include "predict/place_table.h"
#include "predict/restart_file.h"

namespace jigsaw::inline predict {

namespace {

DatePeriod parse_start(const std::string& text) {
  const std::optional<DatePeriod> date = parse_dates(text, text);
  if (date) return *date;
  throw ConfigError(
      concat("command line: --start ", text, " is no date; dates are like 2019-03-01 or 2019-03-01T06:00"));
}

/// A date without time of day is the first of these times that lies in that day; where none does its
/// beginning.
/// @param times  that there are, ascending.
Time start_of(const Dataset& data, const std::string& text, const std::vector<Time>& times) {
  const DatePeriod date = parse_start(text);
  const Calendar of_files = data.files().file_calendar();
  if (!exists(date.first.date, of_files)) {
    throw ConfigError(concat("command line: --start ", text, " is no day of the calendar of the files (",
                             data.files().calendar_name(), ")"));
  }
  const std::string key = concat("command line: --start ", text);
  if (data.files().of_months()) return month_of(date.in(of_files, key).first, of_files);
  const Period asked = date.in(data.files().calendar(), key);
  const auto first = std::ranges::lower_bound(times, asked.first);
  return first != times.end() && *first <= asked.last ? *first : asked.first;
}

/// Those of the forecasts to go on from, all behind as many steps.
std::vector<Time> begun_starts(const Dataset& data, const RestartFile& restart, std::vector<Time> asked,
                               int& first) {
  const std::vector<Time>& there = restart.starts();
  const auto text = [&](Time time) { return data.files().text_of(time); };
  for (const Time start : asked) {
    if (restart.position_of(start)) continue;
    throw ConfigError(concat("command line: ", restart.path(), " holds no forecast from ", text(start),
                             "; its ", counted(std::ssize(there), "forecast"), " start from ",
                             text(there.front()), " to ", text(there.back())));
  }
  if (asked.empty()) asked = there;
  first = restart.steps_of(asked.front());
  for (const Time start : asked) {
    if (restart.steps_of(start) == first) continue;
    throw ConfigError(concat("command line: the forecasts in ", restart.path(), " ended behind step ", first,
                             " (that from ", text(asked.front()), ") and ", restart.steps_of(start),
                             " (that from ", text(start), "); name by --start those that ended alike"));
  }
  return asked;
}

/// The periods of all starts.
void add_periods(Dataset& data, const std::vector<Time>& starts, const std::vector<Field>& fields,
                 CalendarUnit unit, WrittenLeads& leads) {
  leads.unit = name(unit);
  const FileSet& files = data.files();
  files.require_dates(leads.option());
  ForecastSteps steps{starts.front(), data.options().lead_time, leads.first, leads.last, files.calendar()};
  if (!files.of_months()) steps.limits = limits_of_all(data.files(), fields);
  if (!divides(steps.step, unit, steps.calendar)) {
    throw ConfigError(concat("command line: ", leads.option(), " is shorter than a step of ",
                             lead_text(steps.step, files.of_months()), " (data.lead_hours)"));
  }
  leads.periods = calendar_means(steps, unit);
  leads.lacks_start = lacks_start(steps, unit);
  if (leads.periods.empty()) {
    throw ConfigError(
        concat("command line: ", leads.option(), " and --steps ", leads.last - leads.first,
               " leave nothing that could be written: the forecast from ", files.text_of(steps.start),
               leads.first > 0 ? concat(" has, behind ", counted(leads.first, "step"), ",") : " has",
               " all states of no ", leads.unit));
  }
  for (const Time start : starts) {
    steps.start = start;
    if (calendar_means(steps, unit) == leads.periods) continue;
    throw ConfigError(concat("command line: ", leads.option(), " is for forecasts whose ", leads.unit,
                             "s are of the same steps, and those from ", files.text_of(starts.front()),
                             " and ", files.text_of(start),
                             " are not; give each start an --output of its own"));
  }
}

}  // namespace

namespace {

constexpr const char* kLatest = "latest";

/// The newest time that so many steps can be made from. @throws DataError  what keeps the newest of all from
/// it, where there is none.
Time latest_start(const Dataset& data, int steps) {
  std::vector<Time> times = data.input_times();
  if (times.empty()) throw DataError("command line: --start latest: the files hold no time with all inputs");
  std::optional<DataError> why;
  for (auto time = times.rbegin(); time != times.rend(); ++time) {
    try {
      data.require_inputs(*time, steps);
      return *time;
    } catch (const DataError& error) {
      if (!why) why = error;
    }
  }
  throw DataError(*why);
}

}  // namespace

void require_start_dates(const std::vector<std::string>& starts) {
  for (const std::string& text : starts)
    if (text != kLatest) parse_start(text);
}

void require_netcdf_name(const std::string& output, bool of_places) {
  static constexpr std::array<std::pair<const char*, const char*>, 9> kOthers = {{{".zarr", "Zarr store"},
                                                                                  {".grib", "GRIB file"},
                                                                                  {".grib1", "GRIB file"},
                                                                                  {".grib2", "GRIB file"},
                                                                                  {".grb", "GRIB file"},
                                                                                  {".grb1", "GRIB file"},
                                                                                  {".grb2", "GRIB file"},
                                                                                  {".nii", "NIfTI file"},
                                                                                  {".nii.gz", "NIfTI file"}}};
  if (restart_path(output) == output) {
    throw ConfigError(concat("command line: --output ", output,
                             " is named like the state that is kept beside forecasts; end the name in .nc"));
  }
  if (is_table_name(output) && !of_places) {
    throw ConfigError(concat("command line: --output ", output,
                             " is named like a table, which --points alone ", "writes; end the name in .nc"));
  }
  for (const auto& [ending, format] : kOthers) {
    if (!output.ends_with(ending)) continue;
    throw ConfigError(concat("command line: --output ", output, " is named like a ", format,
                             ", and forecasts are written as NetCDF; end the name in .nc"));
  }
}

std::string named_by_start(const std::string& output, const std::vector<Time>& starts, const FileSet& files) {
  constexpr std::string_view kPlace = "{start}";
  if (output.find(kPlace) == std::string::npos) return output;
  if (starts.size() != 1) {
    throw ConfigError(concat("command line: --output ", output, " names one start, and there are ",
                             starts.size(), "; write {start} out"));
  }
  std::string text = files.text_of(starts.front());
  std::erase(text, ':');
  std::string name = output;
  for (std::size_t at = name.find(kPlace); at != std::string::npos; at = name.find(kPlace, at + text.size()))
    name.replace(at, kPlace.size(), text);
  return name;
}

std::vector<Time> starts_of(const Dataset& data, const ForecastOptions& options, int& first) {
  first = 0;
  std::vector<Time> starts;
  if (!options.starts.empty()) {
    const std::vector<Time> times =
        options.restart_from != nullptr ? options.restart_from->starts() : data.input_times();
    for (const std::string& text : options.starts) {
      if (text != kLatest) {
        starts.push_back(start_of(data, text, times));
      } else {
        starts.push_back(options.restart_from != nullptr ? times.back() : latest_start(data, options.steps));
      }
    }
  }
  if (starts.empty() && options.restart_from == nullptr) {
    const std::vector<DataPart>& parts =
        options.period == "train" ? data.options().train : data.options().valid;
    if (parts.empty())
      throw ConfigError("command line: --start is needed, for the configuration has no data.valid");
    const std::string key = options.period == "train" ? "data.train" : "data.valid";
    return data.starts(data.files().periods(parts, key), key, options.steps);
  }
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  if (options.restart_from != nullptr)
    starts = begun_starts(data, *options.restart_from, std::move(starts), first);
  for (const Time start : starts) data.require_inputs(start, first + options.steps, first);
  return starts;
}

std::string latest_remark(const Dataset& data, const ForecastOptions& options,
                          const std::vector<Time>& starts) {
  if (options.restart_from != nullptr || std::ranges::count(options.starts, kLatest) == 0) return "";
  std::optional<Time> newest;
  for (const Field& field : fields_of(data.channels().inputs, Role::kPrognostic)) {
    const std::vector<Time>& times = data.files().times(field);
    if (!times.empty()) newest = std::max(newest.value_or(times.back()), times.back());
  }
  if (!newest || *newest <= starts.back()) return "";
  try {
    data.require_inputs(*newest, options.steps);
  } catch (const DataError& error) {
    return concat("--start latest is ", data.files().text_of(starts.back()), ", for ", error.what());
  }
  return "";
}

void require_leads(const WrittenLeads& leads) {
  if (leads.count() >= 1) return;
  throw ConfigError(concat(
      "command line: ", leads.means ? "--mean " : "--every ", leads.every, " and --steps ",
      leads.last - leads.first, leads.first > 0 ? concat(" behind ", counted(leads.first, "step")) : "",
      " leave nothing that could be written; a lead of the file ends with step ", leads.step_of(0)));
}

WrittenLeads leads_of(Dataset& data, const ForecastOptions& options, const std::vector<Time>& starts,
                      const std::vector<Field>& fields, int first) {
  WrittenLeads leads{first, first + options.steps, options.every, options.means};
  if (options.mean_unit) add_periods(data, starts, fields, *options.mean_unit, leads);
  require_leads(leads);
  if (leads.means) leads.last = leads.step_of(leads.count() - 1);
  return leads;
}

std::vector<std::string> left_out_remarks(const WrittenLeads& leads, int steps) {
  const int before = leads.means ? leads.first_of(0) - leads.first - 1 : 0,
            behind = leads.first + steps - leads.last;
  if (leads.unit.empty()) {
    if (behind == 0) return {};
    return {concat(leads.option(), " does not divide --steps ", steps, ": the rest of ",
                   counted(behind, "step"), " at the end is left out")};
  }
  std::vector<std::string> parts;
  if (before > 0) parts.push_back(counted(before, "step") + " at the beginning");
  if (behind > 0) parts.push_back(counted(behind, "step") + " at the end");
  constexpr int kFew = 10;
  std::vector<std::string> remarks;
  if (!parts.empty())
    remarks.push_back(
        concat(leads.option(), " leaves out ", join(parts, " and "), ", of no whole ", leads.unit));
  const int states = leads.periods.front().last - leads.periods.front().first + 2;
  if (leads.lacks_start && states < kFew)
    remarks.push_back(concat("the first ", leads.unit, " is over ", states - 1, " of its ", states,
                             " states: that at the start is no forecast"));
  return remarks;
}

std::vector<int> channels_of(const std::vector<Channel>& targets, const std::vector<std::string>& variables,
                             const std::vector<double>& levels) {
  const auto asked = [](const auto& list, const auto& item) {
    return list.empty() || std::find(list.begin(), list.end(), item) != list.end();
  };
  std::vector<std::string> known;
  std::vector<double> known_levels;
  std::vector<int> numbers;
  for (std::size_t c = 0; c < targets.size(); ++c) {
    const Field& field = targets[c].field;
    known.push_back(field.variable);
    if (field.level) known_levels.push_back(*field.level);
    if (!asked(variables, field.variable)) continue;
    if (field.level && !asked(levels, *field.level)) continue;
    numbers.push_back(static_cast<int>(c));
  }
  for (const std::string& name : variables) {
    if (asked(known, name)) continue;
    for (const Channel& target : targets) {
      const Field& field = target.field;
      if (!field.level || field.name() != name) continue;
      throw ConfigError(concat("command line: --variables names ", name, ", one level of ", field.variable,
                               "; write --variables ", field.variable, " --levels ",
                               format_level(*field.level)));
    }
    throw ConfigError(concat("command line: --variables names ", name, ", which the model does not predict",
                             did_you_mean(name, known)));
  }
  for (const double level : levels) {
    if (!known_levels.empty() && asked(known_levels, level)) continue;
    throw ConfigError(concat("command line: --levels names ", level, ", which the model does not predict"));
  }
  if (numbers.empty())
    throw ConfigError("command line: --variables and --levels leave nothing that could be written");
  return numbers;
}

}  // namespace jigsaw::inline predict
