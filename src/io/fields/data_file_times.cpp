// The times of a data file: which variable says them, and what it says.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/printable.h"
#include "base/text.h"
#include "fields/data_file.h"
#include "files/coordinate_units.h"

namespace jigsaw::inline fields {

/// The variable of the times for which the states along a dimension hold, beside its coordinate, as cfgrib
/// writes them of forecasts: valid_time(time) or valid_time(step), or with others of one entry,
/// valid_time(time, step). Null where there is none.
const FileVariable* DataFile::valid_times_along(const std::string& dimension) const {
  const FileVariable* found = nullptr;
  for (const FileVariable& variable : file_->variables()) {
    if (!variable.numeric() || variable.name == dimension) continue;
    const auto along = std::ranges::find(variable.dimensions, dimension);
    if (along == variable.dimensions.end()) continue;
    if (variable.shape.count() != variable.shape[static_cast<int>(along - variable.dimensions.begin())])
      continue;
    if (!counts_since(variable.text("units"))) continue;
    const std::string standard_name = variable.text("standard_name");
    const bool named = without_groups(variable.name) == "valid_time";
    if (standard_name != "time" && !(named && standard_name.empty())) continue;
    if (found == nullptr || named) found = &variable;
  }
  return found;
}

/// What says the times along a dimension: its coordinate, unless that holds the reference times of forecasts
/// or no times at all, or does not say which and there is a valid_time, and another variable says when its
/// states hold; or in files of WRF, which have none, `Times` (dates by characters) or XTIME. Dates come
/// first: where files of several runs were joined, XTIME counts from the start of each, and its units name
/// one. A scalar coordinate says its own. Null where nothing does.
const FileVariable* DataFile::times_along(const std::string& dimension) const {
  const FileVariable *const own = coordinate_of(*file_, dimension), *const valid =
                                                                        valid_times_along(dimension);
  const std::string standard_name = own == nullptr ? "" : own->text("standard_name");
  const bool holds =
      own != nullptr && counts_since(own->text("units")) && standard_name != "forecast_reference_time";
  const bool silent =
      standard_name.empty() && valid != nullptr && without_groups(valid->name) == "valid_time";
  if (holds && !silent) return own;
  const FileVariable* dates = own == nullptr ? file_->find("Times") : nullptr;
  const bool along = dates != nullptr && dates->shape.rank() == 2 && dates->dimensions[0] == dimension;
  if (along && !dates->numeric()) return dates;
  if (valid != nullptr) return valid;
  if (own != nullptr) return own;
  const FileVariable* scalar = file_->find(dimension);
  if (scalar != nullptr && scalar->shape.rank() == 0) return scalar;
  const FileVariable* minutes = file_->find("XTIME");
  const bool counted =
      minutes != nullptr && minutes->shape.rank() == 1 && minutes->dimensions[0] == dimension;
  return counted ? minutes : nullptr;
}

const FileVariable& DataFile::require_times(const std::string& dimension) const {
  const FileVariable* variable = times_along(dimension);
  return variable != nullptr ? *variable : coordinate(dimension);  // which says that there is none
}

const std::vector<Time>& DataFile::times(const std::string& dimension) {
  const auto known = times_.find(dimension);
  if (known != times_.end()) return known->second;
  const FileVariable& variable = require_times(dimension);
  const std::string what = concat("the coordinate ", variable.name, " of ", file_->path());
  if (!variable.numeric()) return times_[dimension] = decode_dates(file_->read_texts(variable), what);
  std::string units = variable.text("units");
  // Makani's annotation gives seconds of Unix without saying so.
  if (units.empty() && without_groups(dimension) == "timestamp") units = "seconds since 1970-01-01";
  return times_[dimension] = decode_times(numbers(variable), units, variable.text("calendar"), what);
}

std::vector<Time> DataFile::middles(const std::string& dimension) {
  const std::vector<Time>& stamps = times(dimension);
  if (is_given(dimension, 0)) return stamps;
  const FileVariable& variable = require_times(dimension);
  const FileVariable* const bounds = bounds_of(variable);
  if (bounds == nullptr) return stamps;
  const std::vector<Time> limits =
      decode_times(file_->read_all(*bounds), variable.text("units"), variable.text("calendar"),
                   concat(bounds->name, " of ", file_->path()));
  std::vector<Time> times;
  for (std::size_t i = 0; i + 1 < limits.size(); i += 2)
    times.push_back(floor_div(limits[i] + limits[i + 1], 2));
  // Bounds that were never filled say nothing.
  for (std::size_t i = 0; i < times.size(); ++i)
    if (std::abs(times[i] - stamps[i]) > 31 * kDay) return stamps;
  return times;
}

std::vector<Time> DataFile::limits(const std::string& dimension) {
  if (is_given(dimension, 0)) return {};
  const FileVariable& variable = require_times(dimension);
  const FileVariable* const bounds = bounds_of(variable);
  if (bounds == nullptr) return {};
  const std::vector<double> limits = file_->read_all(*bounds);
  // Bounds that were never filled say nothing.
  constexpr double kMost = 1e30;
  if (std::ranges::any_of(limits, [](double limit) { return !(std::abs(limit) < kMost); })) return {};
  return decode_times(limits, variable.text("units"), variable.text("calendar"),
                      concat(bounds->name, " of ", file_->path()));
}

Calendar DataFile::calendar(const std::string& dimension) const {
  if (is_given(dimension, 0)) return Calendar::kStandard;
  const FileVariable& variable = require_times(dimension);
  return calendar_of_times(variable.text("units"), variable.text("calendar"),
                           concat("the coordinate ", variable.name, " of ", file_->path()));
}

std::string DataFile::calendar_name(const std::string& dimension) const {
  const Calendar known = calendar(dimension);
  const bool named = !is_given(dimension, 0) && known != Calendar::kNone;
  const std::string found = named ? require_times(dimension).text("calendar") : "";
  return found.empty() ? name(known) : printable(found);
}

}  // namespace jigsaw::inline fields
