// Fields of which the files hold running sums: at which times there is the sum over a step.
#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "fields/file_set.h"
#include "times/windows.h"

namespace jigsaw::inline fields {

/// Of running sums those at whose times the sum over a step ends, of which the files hold all that it is made
/// of. @param group  as of index_times()
std::shared_ptr<const FileSet::TimeIndex> FileSet::index_states(const Field& field, const Series& series,
                                                                std::int32_t group) {
  std::shared_ptr<const TimeIndex> sums = index_times(field, series, group);
  if (!series.summed || sums->times.empty()) return sums;
  std::shared_ptr<const TimeIndex>& known = differences_[{sums.get(), *series.summed}];
  if (known) return known;
  auto index = std::make_shared<TimeIndex>();
  index->step = step_of_sums(field, series, *sums);
  const std::vector<Time>& times = sums->times;
  for (std::size_t end = 0; end < times.size(); ++end) {
    const Time before = times[end] - index->step;
    TimeIndex::Step step{end, std::nullopt};
    if (*series.summed == SummedSince::kStart || before % kDay != 0) {
      const auto found = std::ranges::lower_bound(times, before);
      if (found == times.end() || *found != before) continue;
      step.begin = static_cast<std::size_t>(found - times.begin());
    }
    index->times.push_back(times[end]);
    index->entries.push_back(sums->entries[end]);
    index->steps.push_back(step);
  }
  index->sums = std::move(sums);
  return known = index;
}

/// data.time_step, or the usual one between their times. Of sums that begin anew every day it divides the
/// day, and they stand at its multiples.
Time FileSet::step_of_sums(const Field& field, const Series& series, const TimeIndex& sums) {
  const std::vector<Time>& times = sums.times;
  const std::string& path = use(series.parts.front().file).file().path();
  const std::string where =
      concat(field.name(), " in ", first_and_more(path, std::ssize(series.parts) - 1, "file"));
  const Time given = selection_.time_step.every, step = given > 0 ? given : usual_step(times);
  if (step == 0) {
    throw DataError(concat("data.deaccumulate needs the step between the times of ", where,
                           ", which has one time; say it by data.time_step"));
  }
  if (*series.summed == SummedSince::kStart) return step;
  require_dates(concat("data.deaccumulate \"day\" of ", field.name()));
  if (kDay % step != 0) {
    throw DataError(
        concat("data.deaccumulate has sums of ", field.name(), " that begin anew every day, and ", where,
               " has times ", duration_text(step),
               " apart, which does not divide it; data.time_step takes times with a step that does"));
  }
  const auto beside = std::ranges::find_if(times, [&](Time time) { return time % step != 0; });
  if (beside == times.end()) return step;
  throw DataError(concat("data.deaccumulate has sums of ", field.name(),
                         " that begin anew at 00:00, and the times of ", where, ", ", duration_text(step),
                         " apart, are no whole steps from there: ", format_time(*beside, file_calendar()),
                         "; data.time_step takes those that are"));
}

}  // namespace jigsaw::inline fields
