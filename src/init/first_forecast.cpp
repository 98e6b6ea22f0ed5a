#include "init/first_forecast.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "base/text.h"
#include "fields/data_forms.h"
#include "init/first_fields.h"
#include "init/first_headers.h"
#include "init/first_periods.h"
#include "init/first_sections.h"
#include "samples/cell_weights.h"
#include "samples/lone_members.h"

namespace jigsaw::inline init {

namespace {

std::string variable_text(const VariableSummary& variable) {
  if (variable.levels.empty()) return quoted(variable.name);
  std::vector<std::string> levels;
  for (const double level : variable.levels) levels.push_back(format_level(level));
  return concat("{\"name\": ", quoted(variable.name), ", \"levels\": [", join(levels, ", "), "]}");
}

/// "t2m (2 metre temperature, K)".
std::string meaning(const VariableSummary& variable) {
  std::vector<std::string> what;
  constexpr std::size_t kMostLetters = 80;  // it stands in a comment
  if (!variable.long_name.empty()) what.push_back(printable(variable.long_name.substr(0, kMostLetters)));
  if (!variable.units.empty()) what.push_back(printable(variable.units.substr(0, kMostLetters)));
  return what.empty() ? variable.name : concat(variable.name, " (", join(what, ", "), ")");
}

/// Variables as a configuration names them, what they are, and how many fields.
struct NamedVariables {
  std::string list, meanings;
  double fields = 0;
};

NamedVariables named(const std::vector<VariableSummary>& variables) {
  std::vector<std::string> texts, meanings;
  NamedVariables result;
  for (const VariableSummary& variable : variables) {
    texts.push_back(variable_text(variable));
    meanings.push_back(meaning(variable));
    result.fields += static_cast<double>(std::max<std::size_t>(1, variable.levels.size()));
  }
  result.list = concat("[", join(texts, ", "), "]");
  result.meanings = join(meanings, "; ");
  return result;
}

/// Whether every point has a latitude and longitude: on a grid that has them for each, land may have none.
bool has_places(FileSet& files, std::vector<std::string>& notices) {
  if (files.grid().geographic) return true;
  try {
    files.read_forcing_degrees(Box::whole(files.grid().shape()));
    return true;
  } catch (const DataError& error) {
    notices.push_back(concat("without the forcings latitude and longitude: ", error.what()));
    return false;
  }
}

/// The variable with the areas of the cells, which is then selected; "" where there is none on this grid. On
/// one of latitudes and longitudes it must say what it is.
std::string cell_area_of(FileSet& files, const std::set<std::string>& said) {
  const std::optional<std::string> name = files.cell_area_variable();
  if (!name || (files.grid().geographic && !said.contains(*name))) return "";
  try {
    select_cell_area(files, *name);
    return *name;
  } catch (const DataError&) {
    return "";
  }
}

/// data.deaccumulate of what is predicted, and of what is prescribed at the same times; "" where nothing is.
/// @param between  whether what is prescribed is given between its times, as sums are not.
std::string running_sums(const FirstFields& fields, bool between, std::vector<std::string>& notices) {
  std::vector<std::string> sums;
  const auto add = [&](const VariableSummary& variable) {
    const auto found = fields.summed.find(variable.name);
    if (found == fields.summed.end()) return;
    sums.push_back(concat(quoted(variable.name), ": ", form_of<SummedSince>()->write(found->second).dump()));
  };
  for (const VariableSummary& variable : fields.changing.predicted) add(variable);
  for (const VariableSummary& variable : fields.changing.prescribed) {
    if (!between) {
      add(variable);
    } else if (fields.summed.contains(variable.name)) {
      notices.push_back(
          concat(variable.name, " is a running sum, of which data.forcing_times makes no values ",
                 "between its times: leave it out, or write files with the sum over each step"));
    }
  }
  return sums.empty() ? "" : concat("{", join(sums, ", "), "}");
}

/// The first of many names, which stand in a comment.
std::string some_of(std::vector<std::string> names) {
  constexpr std::size_t kMost = 8;
  const std::size_t more = names.size() - std::min(names.size(), kMost);
  names.resize(names.size() - more);
  return concat(join(names, ", "), more == 0 ? "" : concat(" and ", more, " more"));
}

/// With more digits than concat() writes.
std::string degrees(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.8g", value);
  return text;
}

/// Of months from the first day to the last.
std::string period_text(const Period& period, const FileSet& files) {
  const Calendar calendar = files.calendar();
  std::string first = format_time(period.first, calendar), last = format_time(period.last, calendar);
  if (files.of_months()) {
    const auto month = [&](Time time) { return date_from_days(floor_div(time, kDay), calendar); };
    const Date from = month(period.first), to = month(period.last);
    first = format_date({from.year, from.month, 1});
    last = format_date({to.year, to.month, days_in_month(to.year, to.month, files.file_calendar())});
  }
  return concat("[", quoted(first), ", ", quoted(last), "]");
}

}  // namespace

FirstConfiguration first_forecast(const FirstOptions& options, const std::vector<std::string>& paths,
                                  FileSet& files, const std::set<std::string>& bounds) {
  std::vector<std::string> notices;
  const FirstFields fields = first_fields(files, paths.front(), bounds, notices);
  const VariableSummary& first = fields.changing.predicted.front();
  const std::string where =
      files.where({first.name, first.levels.empty() ? std::nullopt : std::optional(first.levels.front())});
  const MemberChoice& member = options.member;
  std::vector<Field> predicted_fields;
  for (const VariableSummary& variable : fields.changing.predicted)
    predicted_fields.push_back(
        {variable.name, variable.levels.empty() ? std::nullopt : std::optional(variable.levels.front())});
  const bool of_one = require_one_member(files, predicted_fields, member);
  if ((member.all || member.number) && !files.has_members() && !of_one) {
    throw ConfigError(
        concat("--member counts only for ensembles, and ", first.name, " in ", where,
               " has no dimension of members (number, realization, member, member_id or ensemble)",
               notices.empty() ? "" : "; " + notices.front()));
  }
  const Shape space = files.grid().shape();
  const std::vector<Time>& times = fields.changing.times;
  const Calendar calendar = files.calendar();
  const auto [input_times, lead, step, even, train, valid] =
      first_periods(times, concat(first.name, " in ", where), calendar, notices);

  std::vector<std::string> names;
  for (const VariableSummary& variable : fields.changing.predicted) names.push_back(variable.name);
  for (std::string& sentence : differing_scalars(paths, names)) notices.push_back(std::move(sentence));

  const NamedVariables predicted = named(fields.changing.predicted),
                       prescribed = named(fields.changing.prescribed);
  std::vector<std::string> forcings;
  if (has_places(files, notices)) forcings = {"latitude", "longitude"};
  const bool dated = calendar != Calendar::kNone;
  if (dated && step < kDay) forcings.emplace_back("time_of_day");
  if (dated && times.back() - times.front() > 60 * kDay) forcings.emplace_back("day_of_year");

  Section data;
  data.add("files", quoted_list(names_of(options, options.files, paths)));
  if (const std::vector<double>& longitude = files.region().longitude; !longitude.empty()) {
    data.add("region", concat("{\"longitude\": [", degrees(longitude[0]), ", ", degrees(longitude[1]), "]}"),
             "the area from west to east: in the files its longitudes stand sorted, with a gap");
    notices.push_back(concat("the longitudes of ", paths.front(),
                             " have a gap: data.region reads the area from ", degrees(longitude[0]),
                             " eastward to ", degrees(longitude[1])));
  }
  if (const RegridOptions& regrid = files.regrid_options(); regrid.method != Regrid::kNone) {
    data.add("regrid", to_text(regrid),
             "in the files fields lie on a list of points; first, last and step of rows and columns");
    notices.push_back(concat("the fields of ", paths.front(),
                             " lie on a list of points: data.regrid brings them to ", space[0], " x ",
                             space[1], " rows and columns"));
  }
  data.add("variables", predicted.list, "predicted: " + predicted.meanings);
  const bool fewer = std::ranges::any_of(fields.changing.prescribed, [&](const VariableSummary& variable) {
    return !std::ranges::includes(variable.times, times);
  });
  if (prescribed.fields > 0) {
    data.add("forcing_variables", prescribed.list,
             concat(fewer ? "known ahead, at fewer times: " : "known ahead: ", prescribed.meanings));
    if (fewer) data.add("forcing_times", quoted("linear"), "between these times");
  }
  if (const std::vector<std::string>& others = fields.changing.left_out; !others.empty())
    data.say(concat("left out, for they have other times: ", join(others, ", ")));
  if (!fields.flat.empty())
    data.say(concat("left out, for they are the same everywhere: ", join(fields.flat, ", ")));
  if (const std::string sums = running_sums(fields, fewer, notices); !sums.empty()) {
    data.add("deaccumulate", sums,
             concat("running sums in the files: a state is the sum over the step that ends then, ",
                    duration_text(step), " or data.time_step"));
  }
  const std::string cell_area = cell_area_of(files, fields.areas);
  std::vector<std::string> constant = fields.constant;
  std::erase(constant, cell_area);
  if (!constant.empty()) data.add("static", quoted_list(constant), "known and constant in time");
  if (const std::vector<std::string> series = files.series_in_time(); !series.empty())
    data.say(concat("series in time, which data.forcing_variables takes: ", some_of(series)));
  if (!forcings.empty()) data.add("forcings", quoted_list(forcings), "known of every place and time");
  if (member.all) {
    data.add("member", quoted("all"),
             concat("of the ensemble: ", join(files.member_numbers(), ", "), ", each a series of samples"));
  } else if (member.number) {
    data.add("member", concat(*member.number), "of the ensemble; \"all\": each is a series of samples");
  }
  const bool areas = files.grid().geographic || !cell_area.empty();
  if (!cell_area.empty())
    data.add("cell_area", quoted(cell_area), "areas of cells, by which points count in loss and scores");
  if (!areas)
    data.say("with \"cell_area\": \"auto\" and loss.area_weighted points count by the areas between them");
  const bool months = files.of_months();
  if (months) data.add("time_step", quoted("month"), "a state stands for its month, which counts 720 hours");
  data.add("input_hours", durations_text(input_times),
           concat("hours that the model sees; the files have a field ", even ? "" : "mostly ", "every ",
                  months ? "month" : duration_text(step)));
  data.add("lead_hours", duration_json(lead).dump(),
           months              ? "a month ahead"
           : lead % kHour == 0 ? "hours ahead that it predicts"
                               : "how far ahead it predicts");
  data.add("predict", quoted("increment"), "the change since hour 0; or \"state\"");
  const std::string held =
      months ? "the files hold the months of " + period_text({times.front(), times.back()}, files)
             : concat("the files hold ", format_time(times.front(), calendar), " to ",
                      format_time(times.back(), calendar));
  data.add("train", period_text(train, files), held);
  data.add("valid", period_text(valid, files), "begins where no window of training reaches");
  const std::string title =
      concat(months              ? "Monthly"
             : lead % kHour == 0 ? concat(lead / kHour, "-hour")
                                 : duration_text(lead),
             " forecasts on a grid of ", space, " points from ", counted(std::ssize(paths), "file"), ".");
  return {whole_text(options, title, data, space, globe_keys(files.grid()), even_levels(space),
                     predicted.fields + prescribed.fields,
                     concat(R"({"type": "mse", "area_weighted": )", areas ? "true}" : "false}")),
          std::move(notices)};
}

}  // namespace jigsaw::inline init
