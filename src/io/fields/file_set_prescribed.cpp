// Fields that are given at times of their own.
#include "base/error.h"
#include "base/text.h"
#include "fields/file_set.h"

namespace jigsaw::inline fields {

void FileSet::select_prescribed(const Field& field, Between between) {
  Series series;
  series.between = between;
  select(field, std::move(series), true);
}

Calendar FileSet::calendar_of(const Field& field) const {
  const Series& source = series(field);
  return source.between == Between::kCycle ? source.calendar : calendar();
}

std::optional<bool> FileSet::seen_at(const Field& field, Time time) const {
  const auto of_field = seen_.find(field);
  if (of_field == seen_.end()) return std::nullopt;
  const auto found = of_field->second.find(time);
  return found == of_field->second.end() ? std::nullopt : std::optional(found->second);
}

std::vector<Time> FileSet::times_of_cycle(const Field& field) const {
  const Series& source = series(field);
  std::vector<Time> times = source.index->times;
  for (Time& time : times) time = in_calendar(time, source.calendar, calendar());
  return times;
}

/// The times of all its files are of one year.
void FileSet::begin_cycle(const Field& field, Series& series) {
  std::optional<Calendar> known;
  for (const Part& part : series.parts) {
    DataFile& file = use(part.file);
    const Calendar found = file.calendar(*said_times(part));
    if (known && found != *known) {
      throw DataError(concat(field.name(), " counts time in the calendar ", name(found), " in ",
                             file.file().path(),
                             ", and in another one in other files; the year that is "
                             "repeated for every year must have one calendar"));
    }
    known = found;
  }
  series.calendar = of_months() ? calendar() : known.value_or(Calendar::kStandard);
  const std::vector<Time>& times = series.index->times;
  if (times.empty() || times.back() < year_after(times.front(), series.calendar)) return;
  const std::string& path = use(series.parts.front().file).file().path();
  throw DataError(concat(
      field.name(), " in ", first_and_more(path, std::ssize(series.parts) - 1, "file"), " is there from ",
      format_time(times.front(), series.calendar), " to ", format_time(times.back(), series.calendar),
      ", and its times are \"cycle\", which is for the times of one year; \"linear\" is for "
      "those of several"));
}

}  // namespace jigsaw::inline fields
