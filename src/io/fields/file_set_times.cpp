// What files say of the times of a field beside where its states stand.
#include <algorithm>

#include "fields/file_set.h"
#include "times/windows.h"

namespace jigsaw::inline fields {

const std::string& FileSet::path_at(const Field& field, Time time) const {
  static const std::string kNone;
  const Series& source = series(field);
  const std::vector<Time>& times = source.index->times;
  const auto found = std::ranges::lower_bound(times, time);
  if (found == times.end() || *found != time) return kNone;
  const TimeIndex::Entry& entry = source.index->entries[static_cast<std::size_t>(found - times.begin())];
  const Part& part = source.parts[static_cast<std::size_t>(entry.part)];
  return files_[static_cast<std::size_t>(part.file)]->file().path();
}

std::vector<Time> FileSet::repeated_times(const Field& field) const {
  std::vector<Time> times;
  for (const auto& [time, entry] : series(field).index->others) {
    if (times.empty() || times.back() != time) times.push_back(time);
  }
  return times;
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
  const Part& part = source.parts.front();
  const std::lock_guard lock(mutex_);
  Pin pin(*this, part.file);
  const std::optional<std::string> dimension = pin.file().times_of(*part.variable, part.axes);
  if (!dimension) return std::nullopt;
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

}  // namespace jigsaw::inline fields
