#include "predict/forecast_choice.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
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

}  // namespace

void require_dates(const std::vector<std::string>& starts) {
  for (const std::string& text : starts) parse_start(text);
}

std::vector<Time> starts_of(const Dataset& data, const ForecastOptions& options, int& first) {
  first = 0;
  std::vector<Time> starts;
  if (!options.starts.empty()) {
    const std::vector<Time> times =
        options.restart_from != nullptr ? options.restart_from->starts() : data.input_times();
    for (const std::string& text : options.starts) starts.push_back(start_of(data, text, times));
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

std::vector<int> channels_of(const std::vector<Channel>& targets, const ForecastOptions& options) {
  const auto asked = [](const auto& list, const auto& item) {
    return list.empty() || std::find(list.begin(), list.end(), item) != list.end();
  };
  std::vector<std::string> variables;
  std::vector<double> levels;
  std::vector<int> numbers;
  for (std::size_t c = 0; c < targets.size(); ++c) {
    const Field& field = targets[c].field;
    variables.push_back(field.variable);
    if (field.level) levels.push_back(*field.level);
    if (!asked(options.variables, field.variable)) continue;
    if (field.level && !asked(options.levels, *field.level)) continue;
    numbers.push_back(static_cast<int>(c));
  }
  for (const std::string& name : options.variables) {
    if (asked(variables, name)) continue;
    for (const Channel& target : targets) {
      const Field& field = target.field;
      if (!field.level || field.name() != name) continue;
      throw ConfigError(concat("command line: --variables names ", name, ", one level of ", field.variable,
                               "; write --variables ", field.variable, " --levels ",
                               format_level(*field.level)));
    }
    throw ConfigError(concat("command line: --variables names ", name, ", which the model does not predict",
                             did_you_mean(name, variables)));
  }
  for (const double level : options.levels) {
    if (!levels.empty() && asked(levels, level)) continue;
    throw ConfigError(concat("command line: --levels names ", level, ", which the model does not predict"));
  }
  if (numbers.empty())
    throw ConfigError("command line: --variables and --levels leave nothing that could be written");
  return numbers;
}

}  // namespace jigsaw::inline predict
