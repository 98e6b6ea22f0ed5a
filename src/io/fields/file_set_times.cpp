// Times of fields: where each stands in the files of a set, and what else these say of it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/text.h"
#include "fields/data_forms.h"
#include "fields/file_set.h"
#include "fields/forecast_axes.h"
#include "times/windows.h"

namespace jigsaw::inline fields {

const std::string& FileSet::path_at(const Field& field, const Moment& moment) const {
  static const std::string kNone;
  const Series& source = series(field);
  const TimeIndex& index = source.index_of(moment.member);
  const std::vector<Time>& times = index.times;
  const auto found = std::ranges::lower_bound(times, moment.time);
  if (found == times.end() || *found != moment.time) return kNone;
  const TimeIndex::Entry& entry = index.entries[static_cast<std::size_t>(found - times.begin())];
  const Part& part = source.parts[static_cast<std::size_t>(entry.part)];
  return files_[static_cast<std::size_t>(part.file)]->file().path();
}

std::vector<Time> FileSet::repeated_times(const Field& field) const {
  const Series& source = series(field);
  std::set<Time> times;
  for (std::int32_t member = 0; member < members(); ++member) {
    const TimeIndex& index = source.index_of(member);
    for (const auto& [time, entry] : index.others) times.insert(time);
    if (!index.sums || index.sums->others.empty()) continue;
    const auto repeated = [&](std::size_t sum) {
      return index.sums->others.contains(index.sums->times[sum]);
    };
    for (std::size_t i = 0; i < index.times.size(); ++i) {
      const TimeIndex::Step& step = index.steps[i];
      if (repeated(step.end) || (step.begin && repeated(*step.begin))) times.insert(index.times[i]);
    }
  }
  return {times.begin(), times.end()};
}

std::optional<FileSet::OtherPhase> FileSet::other_phase(const Field& field) const {
  const Series& source = series(field);
  const std::vector<Time>& times = source.index->times;
  const std::vector<TimeIndex::Entry>& entries = source.index->entries;
  if (of_months() || times.size() < 4) return std::nullopt;
  const Time step = usual_step(times);
  if (step > kDay) return std::nullopt;
  // On both sides two states are a step apart, so that it is no state beside the others.
  for (std::size_t i = 2; i + 1 < times.size(); ++i) {
    if (entries[i].part == entries[i - 1].part || (times[i] - times[i - 1]) % step == 0) continue;
    if (times[i - 1] - times[i - 2] != step || times[i + 1] - times[i] != step) continue;
    return OtherPhase{path_at(field, times[i]), times[i - 1], times[i]};
  }
  return std::nullopt;
}

std::optional<Period> FileSet::time_limits(const Field& field) {
  const Series& source = series(field);
  if (!source.has_time || source.absent) return std::nullopt;
  if (source.index->sums) return Period{-source.index->step, 0};
  const Part& part = source.parts.front();
  const std::lock_guard lock(mutex_);
  Pin pin(*this, part.file);
  const std::optional<std::string> dimension = pin.file().times_of(*part.variable, part.axes);
  if (!dimension || part.lead) return std::nullopt;
  const std::vector<Time>& times = pin.file().times(*dimension);
  const std::vector<Time> limits = pin.file().limits(*dimension);
  if (times.empty() || limits.size() != 2 * times.size()) return std::nullopt;
  if (of_months()) return Period{0, 0};
  const Period first{limits[0] - times[0], limits[1] - times[0]};
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (Period{limits[2 * i] - times[i], limits[2 * i + 1] - times[i]} != first) return std::nullopt;
  }
  return first.first < first.last ? std::optional(first) : std::nullopt;
}

void FileSet::require_dates(const std::string& what) const {
  if (file_calendar() != Calendar::kNone) return;
  throw DataError(
      concat(what, " needs dates, and the times of ", calendar_file_,
             " count from none; give them units such as \"seconds since 2000-01-01\", or do without"));
}

/// As the file has them, or the months that they stand for.
std::vector<Time> FileSet::times_in(int number, const std::string& name) {
  DataFile& file = use(number);
  if (!of_months()) return file.times(name);
  std::vector<Time> times = file.middles(name);
  const Calendar calendar = file.calendar(name);
  const auto text = [&](std::size_t i) { return format_time(file.times(name)[i], calendar); };
  for (std::size_t i = 0; i < times.size(); ++i) {
    times[i] = month_of(times[i], calendar);
    if (i == 0 || times[i] != times[i - 1] || file.times(name)[i] == file.times(name)[i - 1]) continue;
    throw DataError(concat(file.file().path(), " holds ", text(i - 1), " and ", text(i),
                           ", two times of one month, and data.time_step is \"month\""));
  }
  return times;
}

/// What says the times of a part, or the starts of its forecasts.
std::optional<std::string> FileSet::said_times(const Part& part) {
  DataFile& file = use(part.file);
  if (part.lead) return forecast_axes(file, *part.variable).times;
  return file.times_of(*part.variable, part.axes);
}

std::vector<Time> FileSet::times_of(const Part& part, const std::string& times) {
  if (!part.lead) return times_in(part.file, times);
  std::vector<Time> found = forecast_axes(use(part.file), *part.variable).starts;
  for (Time& time : found) time += *part.lead;
  return found;
}

/// Times that count when forecasts began are not those of their states.
void FileSet::refuse_starts(const Field& field, const Part& part, const std::string& times) {
  DataFile& file = use(part.file);
  const std::optional<Time> lead = file.lead_beside(*part.variable, times);
  if (!lead) return;
  throw DataError(concat(field.name(), " in ", file.file().path(), " is of forecasts of ",
                         duration_text(*lead), ", and ", without_groups(times),
                         " counts when they began and not when they hold; `lead` of the variable takes them "
                         "at start + lead: {\"name\": \"",
                         field.variable, "\", \"lead\": ", duration_json(*lead).dump(),
                         "}; where they are the times of the states, give them the standard_name time"));
}

/// Whether the file has forecasts of this lead.
bool FileSet::take_lead(Part& part, Time lead) {
  const ForecastAxes axes = forecast_axes(use(part.file), *part.variable);
  const auto position = axes.place_of_lead.find(lead);
  if (position == axes.place_of_lead.end()) return false;
  part.lead = lead;
  part.axes.time = axes.start.empty() ? -1 : dimension_of(part, axes.start);
  part.lead_axis = axes.lead.empty() ? -1 : dimension_of(part, axes.lead);
  part.lead_position = position->second;
  return true;
}

void FileSet::refuse_lead(const Field& field, Time lead) {
  std::set<Time> leads;
  std::string path;
  for (int f = 0; f < static_cast<int>(files_.size()); ++f) {
    const std::optional<FieldPlace> place = find_in(f, field);
    if (!place) continue;
    if (path.empty()) path = use(f).file().path();
    const std::vector<Time> found = forecast_axes(use(f), *place->variable).leads;
    leads.insert(found.begin(), found.end());
  }
  std::vector<std::string> texts;
  for (const Time one : leads) texts.push_back(duration_text(one));
  throw DataError(concat(field.name(), " has no lead of ", duration_text(lead), " in ", path,
                         "; leads there: ", join(texts, ", ")));
}

void FileSet::refuse_beside_step(const Field& field, const Part& part, Time time, Time step) {
  const Time beside = (time % step + step) % step;
  throw DataError(concat("data.time_step ", duration_text(step),
                         " takes times at multiples of it since 1970-01-01T00:00, and none of ", field.name(),
                         ": those of ", use(part.file).file().path(), " lie beside, ",
                         format_time(time, file_calendar()), " by ", duration_text(beside),
                         "; 0 takes all, data.time_tolerance those that are near"));
}

/// Whether times are those of a field that is given between them, and of another calendar than all others.
bool FileSet::in_other_calendar(const Series& series, int file, const std::string& times) {
  if (series.between == Between::kNothing || series.between == Between::kCycle) return false;
  if (!calendar_) return false;
  const Calendar own = use(file).calendar(times);
  return own != *calendar_ && own != Calendar::kNone && *calendar_ != Calendar::kNone;
}

/// What stands between the times of its files is given at every time, whichever of them data.time_step takes.
/// @param group  of whose parts, and those that hold all members, the times are.
std::shared_ptr<const FileSet::TimeIndex> FileSet::index_times(const Field& field, const Series& series,
                                                               std::int32_t group) {
  const std::vector<Part>& parts = series.parts;
  const Time step = series.between == Between::kNothing ? selection_.time_step.every : 0;
  TimeDimensions key{{}, step > 0, series.between != Between::kCycle};
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const Part& part = parts[p];
    if (group != kAllGroups && part.group != kAllGroups && part.group != group) continue;
    const std::optional<std::string> times = said_times(part);
    if (!times) refuse_timeless(field, parts, part);
    if (!part.lead) refuse_starts(field, part, *times);
    // A year that stands for every year is counted in days of its own.
    if (series.between != Between::kCycle && !in_other_calendar(series, part.file, *times))
      check_calendar(part.file, *times);
    key.parts.emplace_back(static_cast<int>(p), part.file, *times, part.lead);
  }
  std::shared_ptr<const TimeIndex>& known = indices_[key];
  if (known) return known;
  struct Found {
    Time time, distance, own;  ///< for which the file's own is taken, and how far that is from it
    TimeIndex::Entry entry;
    auto order() const { return std::tie(time, distance, own); }
  };
  std::vector<Found> found;
  std::optional<std::pair<std::size_t, Time>>
      beside;  // the first part and time that data.time_step leaves out
  for (const auto& [p, file, dimension, lead] : key.parts) {
    std::vector<Time> times = times_of(parts[static_cast<std::size_t>(p)], dimension);
    if (!of_months() && in_other_calendar(series, file, dimension)) {
      for (Time& time : times) time = at_part_of_month(time, use(file).calendar(dimension), calendar());
    }
    for (std::size_t i = 0; i < times.size(); ++i) {
      const Time time = step > 0 ? floor_div(times[i] + step / 2, step) * step : times[i];
      const Time distance = std::abs(times[i] - time);
      if (distance > selection_.time_tolerance) {
        if (!beside) beside = {static_cast<std::size_t>(p), times[i]};
        continue;
      }
      found.push_back({time, distance, times[i], {p, static_cast<std::int32_t>(i)}});
    }
  }
  if (found.empty() && beside) refuse_beside_step(field, parts[beside->first], beside->second, step);
  const bool last_wins = selection_.overlap == Overlap::kLast;
  std::stable_sort(found.begin(), found.end(), [&](const auto& a, const auto& b) {
    if (a.order() != b.order()) return a.order() < b.order();
    return last_wins && std::tie(a.entry.part, a.entry.position) > std::tie(b.entry.part, b.entry.position);
  });
  auto index = std::make_shared<TimeIndex>();
  Time nearest = 0;
  for (const Found& one : found) {
    if (index->times.empty() || index->times.back() != one.time) {
      index->times.push_back(one.time);
      index->entries.push_back(one.entry);
      nearest = one.own;
    } else if (selection_.overlap == Overlap::kEqual && one.own == nearest) {
      index->others.insert({one.time, one.entry});
    }
  }
  return known = index;
}

/// Files with other members than others must have the same times.
void FileSet::index_groups(const Field& field, Series& series) {
  series.groups = groups_of(series.parts);
  if (series.groups.empty()) {
    series.index = index_states(field, series, kAllGroups);
    return;
  }
  const std::int32_t groups = std::ranges::max(series.groups) + 1;
  for (std::int32_t group = 0; group < groups; ++group)
    series.group_indices.push_back(index_states(field, series, group));
  series.index = series.group_indices.front();
  const std::vector<Time>& times = series.index->times;
  for (std::int32_t group = 1; group < groups; ++group) {
    const std::vector<Time>& others = series.group_indices[static_cast<std::size_t>(group)]->times;
    const auto [here, there] = std::ranges::mismatch(times, others);
    if (here == times.end() && there == others.end()) continue;
    const bool in_first = there == others.end() || (here != times.end() && *here < *there);
    throw DataError(concat(field.name(), " at ", text_of(in_first ? *here : *there), " is of the members ",
                           members_text(series, in_first ? 0 : group), ", and in no file of ",
                           members_text(series, in_first ? group : 0),
                           "; with data.member \"all\" every time has all members"));
  }
}

/// "0, 1, 2, 3 in a.nc and 2 more files".
std::string FileSet::members_text(const Series& series, std::int32_t group) const {
  std::vector<double> numbers;
  for (std::size_t m = 0; m < series.groups.size(); ++m)
    if (series.groups[m] == group) numbers.push_back(members_[m]);
  std::vector<std::string> paths;
  for (const Part& part : series.parts)
    if (part.group == group) paths.push_back(files_[static_cast<std::size_t>(part.file)]->file().path());
  return concat(join(numbers, ", "), " in ", first_and_more(paths.front(), std::ssize(paths) - 1, "file"));
}

const FileSet::TimeIndex& FileSet::Series::index_of(std::int32_t member) const {
  return groups.empty() ? *index
                        : *group_indices[static_cast<std::size_t>(groups[static_cast<std::size_t>(member)])];
}

const FileSet::Part& FileSet::Series::constant(std::int32_t member) const {
  const auto holds = [&](const Part& part) {
    return groups.empty() || part.group == kAllGroups ||
           part.group == groups[static_cast<std::size_t>(member)];
  };
  return *std::ranges::find_if(parts, holds);
}

std::optional<std::string> FileSet::changes_in(const Field& field) {
  const Series& source = series(field);
  require(source.last.has_value(), "a field in time is no constant one");
  const Part &first = source.parts[0], &last = *source.last;
  const std::int64_t time = last.axes.time >= 0 ? last.variable->shape[last.axes.time] - 1 : 0;
  if (time < 0 || (time == 0 && last.file == first.file)) return std::nullopt;
  const std::int64_t rows = grid_.shape()[0], columns = grid_.shape()[1];
  const auto member_in = [](const Part& part) {  // the first that the file holds
    const auto held = std::ranges::find_if(part.members, [](auto position) { return position >= 0; });
    return held == part.members.end() ? 0 : static_cast<std::int32_t>(held - part.members.begin());
  };
  for (const std::int64_t row : {rows / 6, rows / 2, rows * 5 / 6}) {
    std::vector<double> here(static_cast<std::size_t>(columns)), there = here;
    read_part<double>(first, 0, member_in(first), {{row, 0}, {1, columns}}, here);
    read_part<double>(last, time, member_in(last), {{row, 0}, {1, columns}}, there);
    double low = std::numeric_limits<double>::infinity(), high = -low, most = 0;
    for (std::size_t i = 0; i < here.size(); ++i) {
      if (std::isnan(here[i]) != std::isnan(there[i])) most = std::numeric_limits<double>::infinity();
      if (std::isnan(here[i]) || std::isnan(there[i])) continue;
      low = std::min(low, here[i]);
      high = std::max(high, here[i]);
      most = std::max(most, std::abs(here[i] - there[i]));
    }
    if (most > 1e-3 * std::max(high - low, 0.0)) return use(last.file).file().path();
  }
  return std::nullopt;
}

}  // namespace jigsaw::inline fields
