#include "train/first_forecast.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "train/data_report.h"
#include "train/first_sections.h"

namespace jigsaw::inline train {

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
  if (!variable.long_name.empty()) what.push_back(variable.long_name);
  if (!variable.units.empty()) what.push_back(variable.units);
  return what.empty() ? variable.name : concat(variable.name, " (", join(what, ", "), ")");
}

/// Which variables are predicted, which are known and constant, and which have other times than the most.
struct Chosen {
  std::vector<VariableSummary> predicted, constant, left_out;
};

/// Whether a variable has one state at the first, the middle and the last of its times, on a part of the
/// grid. Data sets repeat what is constant (orography, land) with a time.
bool never_changes(FileSet& files, const VariableSummary& variable) {
  if (!variable.levels.empty()) return false;
  const Field field{variable.name, {}};
  files.select(field, true);
  Box box = Box::whole(files.grid().shape());
  for (int dim = 0; dim < 2; ++dim) box.extent[dim] = std::min<std::int64_t>(box.extent[dim], 64);
  std::vector<double> first(static_cast<std::size_t>(box.extent.count())), other(first.size());
  files.read(field, variable.times.front(), box, first);
  double least = INFINITY, most = -INFINITY;
  for (const double value : first) {
    if (value < least) least = value;
    if (value > most) most = value;
  }
  // Files may pack it by different scales, into some ten thousands of steps.
  const double packing = 1e-4 * (most - least);
  for (const Time time : {variable.times[variable.times.size() / 2], variable.times.back()}) {
    files.read(field, time, box, other);
    const auto same = [packing](double a, double b) {
      return std::abs(a - b) <= packing || (std::isnan(a) && std::isnan(b));
    };
    if (!std::equal(first.begin(), first.end(), other.begin(), same)) return false;
  }
  return true;
}

/// Whether a constant variable has one value everywhere, or none: nothing to learn from, nor to normalise by.
bool is_flat(FileSet& files, const VariableSummary& variable) {
  const Field field{variable.name, {}};
  std::vector<double> values(static_cast<std::size_t>(files.grid().shape().count()));
  try {
    files.select(field, !variable.times.empty());
    files.read(field, variable.times.empty() ? 0 : variable.times.front(), Box::whole(files.grid().shape()),
               values);
  } catch (const DataError&) {
    return false;  // which `check` tells with its reason
  }
  std::erase_if(values, [](double value) { return std::isnan(value); });
  return std::ranges::adjacent_find(values, std::not_equal_to()) == values.end();
}

Chosen choose(FileSet& files, const std::vector<VariableSummary>& catalogue) {
  std::map<std::vector<Time>, int> fields;
  for (const VariableSummary& variable : catalogue)
    if (variable.times.size() > 1)
      fields[variable.times] += static_cast<int>(std::max<std::size_t>(1, variable.levels.size()));
  Chosen chosen;
  const auto most = std::max_element(fields.begin(), fields.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  for (const VariableSummary& variable : catalogue) {
    if (variable.times.size() <= 1) {
      if (variable.levels.empty()) chosen.constant.push_back(variable);
    } else if (never_changes(files, variable)) {
      chosen.constant.push_back(variable);
    } else if (variable.times == most->first) {
      chosen.predicted.push_back(variable);
    } else {
      chosen.left_out.push_back(variable);
    }
  }
  return chosen;
}

/// Training and validation: four fifths of the times and the rest, or less where the rest would hold no
/// window, further apart than a window reaches.
std::pair<Period, Period> split_periods(const std::vector<Time>& times, Time reach, Calendar calendar) {
  const auto begin_behind = [&](std::size_t cut) {
    return std::upper_bound(times.begin(), times.end(), times[cut - 1] + reach);
  };
  std::size_t cut = times.size() * 4 / 5;
  auto next = times.end();
  for (; cut > 0; --cut) {
    next = begin_behind(cut);
    if (next != times.end() && times.back() - *next >= reach) break;
  }
  if (cut == 0 || times[cut - 1] - times.front() < reach) {
    throw DataError(concat("the files hold ", times.size(), " times, from ",
                           format_time(times.front(), calendar), " to ", format_time(times.back(), calendar),
                           ": too few to train and to validate on"));
  }
  return {{times.front(), times[cut - 1]}, {*next, times.back()}};
}

std::string period_text(const Period& period, Calendar calendar) {
  return concat("[", quoted(format_time(period.first, calendar)), ", ",
                quoted(format_time(period.last, calendar)), "]");
}

}  // namespace

std::string first_forecast(const FirstOptions& options, const std::vector<std::string>& paths,
                           FileSet& files) {
  const Chosen chosen = choose(files, files.catalogue());
  if (chosen.predicted.empty()) throw DataError(concat(paths.front(), ": no variable changes in time"));
  const VariableSummary& first = chosen.predicted.front();
  for (const VariableSummary& variable : chosen.predicted)
    files.select({variable.name, variable.levels.empty() ? std::nullopt : std::optional(variable.levels[0])},
                 true);
  const MemberChoice& member = options.member;
  if ((member.all || member.number) && !files.has_members()) {
    throw ConfigError(concat("--member counts only for ensembles, and ", first.name, " in ", paths.front(),
                             " has no dimension of members (number, realization, member or ensemble)"));
  }
  const Shape space = files.grid().shape();
  const std::vector<Time>& times = first.times;
  const Calendar calendar = files.calendar();
  const Time step = usual_step(times);
  if (step % kHour != 0) {
    throw DataError(concat(first.name, " has a value every ", step,
                           " seconds; a configuration counts leads in whole hours"));
  }
  const Time hours = step / kHour, lead = 6 % hours == 0 ? 6 : hours;
  const auto [train, valid] = split_periods(times, 2 * lead * kHour, calendar);

  std::vector<std::string> predicted, meanings, constant, flat, left_out, forcings;
  double channels = 0;
  for (const VariableSummary& variable : chosen.predicted) {
    predicted.push_back(variable_text(variable));
    meanings.push_back(meaning(variable));
    channels += static_cast<double>(std::max<std::size_t>(1, variable.levels.size()));
  }
  for (const VariableSummary& variable : chosen.constant)
    (is_flat(files, variable) ? flat : constant).push_back(variable.name);
  for (const VariableSummary& variable : chosen.left_out) left_out.push_back(variable.name);
  forcings = {"latitude", "longitude"};
  if (hours < 24) forcings.emplace_back("time_of_day");
  if (times.back() - times.front() > 60 * kDay) forcings.emplace_back("day_of_year");

  Section data;
  data.add("files", quoted_list(names_of(options, options.files, paths)));
  data.add("variables", concat("[", join(predicted, ", "), "]"), "predicted: " + join(meanings, "; "));
  if (!left_out.empty()) data.say(concat("left out, for they have other times: ", join(left_out, ", ")));
  if (!flat.empty()) data.say(concat("left out, for they are the same everywhere: ", join(flat, ", ")));
  if (!constant.empty()) data.add("static", quoted_list(constant), "known and constant in time");
  data.add("forcings", quoted_list(forcings), "known of every place and time");
  if (member.all) {
    data.add("member", quoted("all"),
             concat("of the ensemble: ", join(files.member_numbers(), ", "), ", each a series of samples"));
  } else if (member.number) {
    data.add("member", concat(*member.number), "of the ensemble; \"all\": each is a series of samples");
  }
  data.add("input_hours", concat("[", -lead, ", 0]"),
           concat("hours that the model sees; the files have a field every ", hours, " h"));
  data.add("lead_hours", concat(lead), "hours ahead that it predicts");
  data.add("predict", quoted("increment"), "the change since hour 0; or \"state\"");
  data.add("train", period_text(train, calendar),
           concat("the files hold ", format_time(times.front(), calendar), " to ",
                  format_time(times.back(), calendar)));
  data.add("valid", period_text(valid, calendar), "begins where no window of training reaches");
  const std::string title = concat(lead, "-hour forecasts on a grid of ", space, " points from ",
                                   paths.size(), paths.size() == 1 ? " file." : " files.");
  return whole_text(options, title, data, space, edges_of(files.grid()), channels,
                    R"({"type": "mse", "area_weighted": true})");
}

}  // namespace jigsaw::inline train
