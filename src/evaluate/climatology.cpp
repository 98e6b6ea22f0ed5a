#include "evaluate/climatology.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <span>

#include "array/host_view.h"
#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline evaluate {

namespace {

int longest_year(Calendar calendar) {
  switch (calendar) {
    case Calendar::kNoLeap:
      return 365;
    case Calendar::k360Day:
      return 360;
    case Calendar::kStandard:
    case Calendar::kAllLeap:
    case Calendar::kJulian:
    case Calendar::kNone:
      break;
  }
  return 366;
}

/// Weight of a state on a day of the year in the mean of another one.
double weight_between(int day, int other, int year) {
  const int apart = std::abs(day - other), distance = std::min(apart, year - apart);
  return std::max(0.0, 1.0 - static_cast<double>(distance) / Climatology::kReach);
}

/// The days of the year that a state stands for.
std::vector<int> days_of(Time time, Calendar calendar) {
  if (calendar == Calendar::kNone) return {1};
  const int day = day_of_year(time, calendar);
  const bool fills = day == days_in_year(time, calendar) && day < longest_year(calendar);
  return fills ? std::vector{day, day + 1} : std::vector{day};
}

}  // namespace

DayAndHour day_and_hour(Time time, Calendar calendar) {
  if (calendar == Calendar::kNone) return {1, 0};  // so that all states are of the same mean
  return {day_of_year(time, calendar), ((time % kDay) + kDay) % kDay};
}

struct Climatology::Sum {
  std::vector<double> values, weights;

  void add(std::span<const double> state, double weight) {
    values.resize(state.size());
    weights.resize(state.size());
    for (std::size_t i = 0; i < state.size(); ++i) {
      if (std::isnan(state[i])) continue;
      values[i] += weight * state[i];
      weights[i] += weight;
    }
  }
  std::vector<float> mean(std::size_t size) const {
    std::vector<float> result(size, std::numeric_limits<float>::quiet_NaN());
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (weights[i] > 0) result[i] = static_cast<float>(values[i] / weights[i]);
    }
    return result;
  }
};

std::map<DayAndHour, Climatology::Sum> Climatology::sums_of(FileSet& files, const Field& field,
                                                            const Box& plane,
                                                            const std::vector<Period>& periods,
                                                            const std::vector<DayAndHour>& wanted) {
  const Calendar calendar = files.calendar();
  std::map<DayAndHour, Sum> sums;
  std::vector<double> state(static_cast<std::size_t>(plane.extent.count()));
  for (const Time time : files.times(field)) {
    if (std::ranges::none_of(periods, [&](const Period& period) { return period.contains(time); })) continue;
    const Time second = day_and_hour(time, calendar).second;
    std::vector<std::pair<Sum*, double>> weighted;
    for (const DayAndHour& when : wanted) {
      if (when.second != second) continue;
      double weight = 0;
      for (const int day : days_of(time, calendar))
        weight += weight_between(day, when.day, longest_year(calendar));
      if (weight != 0) weighted.emplace_back(&sums[when], weight);
    }
    if (weighted.empty()) continue;
    for (std::int32_t member = 0; member < files.members_of(field); ++member) {
      files.read(field, {time, member}, plane, state);
      for (const auto& [sum, weight] : weighted) sum->add(state, weight);
    }
  }
  return sums;
}

void Climatology::allocate(const Box& piece, const std::vector<DayAndHour>& wanted) {
  const Context host = Context::make_host(Backend::kReference, 1);
  const Shape shape{piece.extent[1], piece.extent[2], piece.extent[3]};
  for (const DayAndHour& when : wanted)
    means_.emplace(when, Array(host, shape, DType::kFloat32, Purpose::kWorkspace));
}

std::string climatology_remark(Dataset& data, const std::vector<Time>& starts, int leads) {
  FileSet& files = data.files();
  const Calendar calendar = files.calendar();
  const std::vector<Period> periods = files.periods(data.options().train, "data.train");
  std::set<Time> verified;
  for (const Time start : starts)
    for (int lead = 1; lead <= leads; ++lead) verified.insert(start + lead * data.options().lead_time);
  std::set<const std::vector<Time>*> looked_at;  // fields of the same files share their times
  std::set<Time> unknown;
  bool any = false;  // a target has one at a time
  for (const Channel& target : data.channels().targets) {
    const std::vector<Time>& times = files.times(target.field);
    if (!looked_at.insert(&times).second) continue;
    std::map<Time, std::set<int>> days;  // that states stand for, by the time of the day
    for (const Time time : times) {
      if (std::ranges::none_of(periods, [&](const Period& period) { return period.contains(time); }))
        continue;
      for (const int day : days_of(time, calendar)) days[day_and_hour(time, calendar).second].insert(day);
    }
    for (const Time time : verified) {
      const DayAndHour when = day_and_hour(time, calendar);
      const auto near = [&](int day) { return weight_between(when.day, day, longest_year(calendar)) > 0; };
      const bool known = std::ranges::any_of(days[when.second], near);
      any = any || known;
      if (!known) unknown.insert(time);
    }
  }
  if (unknown.empty()) return "";
  if (!any) {
    return "the files hold no states of data.train that say what is usual at the times which are verified: "
           "there is no anomaly correlation; --climatology names files of one";
  }
  return concat("the climatology of data.train knows nothing of ", unknown.size(), " of the ",
                counted(verified.size(), "time"), " that are verified, first ",
                files.text_of(*unknown.begin()),
                ": anomaly correlations and climatology_rmse are over the others alone, and fewer forecasts "
                "than other scores");
}

template <typename T>
void Climatology::put(const DayAndHour& when, std::int64_t channel, const std::vector<T>& plane) {
  const Array& mean = means_.at(when);
  const HostView<float> numbers(mean);
  const auto channels = static_cast<std::size_t>(mean.shape().back());
  for (std::size_t point = 0; point < plane.size(); ++point)
    numbers[point * channels + static_cast<std::size_t>(channel)] = static_cast<float>(plane[point]);
}

Climatology::Climatology(FileSet& files, const std::vector<Channel>& channels, const Box& piece,
                         const std::vector<Period>& periods, const std::vector<DayAndHour>& wanted) {
  if (piece.empty()) return;
  allocate(piece, wanted);
  const Box plane{{piece.begin[1], piece.begin[2]}, {piece.extent[1], piece.extent[2]}};
  // A channel at a time, so that sums in float64 stand beside means of one channel only.
  for (std::int64_t channel = piece.begin[3]; channel < piece.end(3); ++channel) {
    const Field& field = channels[static_cast<std::size_t>(channel)].field;
    std::map<DayAndHour, Sum> sums = sums_of(files, field, plane, periods, wanted);
    for (const DayAndHour& when : wanted)
      put(when, channel - piece.begin[3], sums[when].mean(static_cast<std::size_t>(plane.extent.count())));
  }
}

FileSelection Climatology::file_selection(const DataOptions& options) {
  FileSelection selection;
  selection.regrid = options.regrid;
  selection.fill = options.fill;
  selection.missing = options.missing;
  // What is said of sums is not said of their differences.
  std::erase_if(selection.missing, [&](const auto& one) {
    const std::string& name = one.first;
    return options.deaccumulate.contains(name) ||
           options.deaccumulate.contains(name.substr(0, name.rfind('_')));
  });
  for (const auto* variables : {&options.variables, &options.diagnostic})
    for (const VariableOptions& variable : *variables)
      selection.sources.variables[variable.name] = {variable.data_set, {}};
  selection.free_dimensions = {"hour", "dayofyear"};
  return selection;
}

Climatology::Climatology(FileSet& files, const std::vector<Channel>& channels, const Box& piece,
                         const std::vector<DayAndHour>& wanted) {
  if (piece.empty()) return;
  allocate(piece, wanted);
  const Box plane{{piece.begin[1], piece.begin[2]}, {piece.extent[1], piece.extent[2]}};
  std::vector<double> state(static_cast<std::size_t>(plane.extent.count()));
  for (std::int64_t channel = piece.begin[3]; channel < piece.end(3); ++channel) {
    const Field& field = channels[static_cast<std::size_t>(channel)].field;
    const auto position = [&](const char* dimension, double value) {
      const std::vector<double> all = files.coordinates(field, dimension);
      if (dimension == std::string("dayofyear") && std::ranges::find(all, 0.0) != all.end()) {
        throw DataError(concat("the climatology of ", field.name(), " in ", files.where(field),
                               " counts dayofyear from 0; the first of January is day 1"));
      }
      const auto found = std::find(all.begin(), all.end(), value);
      if (found != all.end()) return std::int64_t{found - all.begin()};
      throw DataError(concat("the climatology of ", field.name(), " has no ", dimension, " ", value,
                             "; it has ", all.size(), " from ", all.empty() ? 0.0 : all.front(), " to ",
                             all.empty() ? 0.0 : all.back()));
    };
    for (const DayAndHour& when : wanted) {
      const double hour = static_cast<double>(when.second) / static_cast<double>(kHour);
      files.read_entry(field,
                       {{"hour", position("hour", hour)}, {"dayofyear", position("dayofyear", when.day)}},
                       plane, state);
      put(when, channel - piece.begin[3], state);
    }
  }
}

const Array& Climatology::at(const DayAndHour& when) const {
  return means_.at(when);
}

}  // namespace jigsaw::inline evaluate
