#include "fields/forecast_axes.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline fields {

namespace {

/// What a variable of durations says, in seconds.
std::vector<Time> leads_of(DataFile& file, const FileVariable& variable) {
  return decode_times(file.file().read_all(variable), variable.text("units"), "",
                      concat("the leads ", variable.name, " of ", file.file().path()));
}

}  // namespace

bool ForecastAxes::holds(Time from, Time ahead) const {
  return place_of_start.contains(from) && place_of_lead.contains(ahead);
}

std::optional<std::map<std::string, std::int64_t>> ForecastAxes::positions(Time from, Time ahead,
                                                                           std::int64_t number) const {
  if (!holds(from, ahead) || number >= members) return std::nullopt;
  std::map<std::string, std::int64_t> found;
  if (!start.empty()) found[start] = place_of_start.at(from);
  if (!lead.empty()) found[lead] = place_of_lead.at(ahead);
  if (!member.empty()) found[member] = number;
  return found;
}

namespace {

/// What a variable of a file says, one part after the other.
class Finder {
 public:
  Finder(DataFile& file, const FileVariable& variable) : file_(file), variable_(variable) {
    file.file().require_numbers(variable);
    axes_ = file.axes(variable);
  }

  ForecastAxes find() {
    for (int d = 0; d < variable_.shape.rank(); ++d) add_dimension(d);
    if (leads_ == nullptr) leads_ = file_.scalar_lead();
    if (!times_.empty() && file_.starts_along(times_)) {
      refuse(concat("starts and leads stand in pairs along ", times_,
                    "; write each along a dimension of its own"));
    }
    find_times();
    return std::move(found_);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw DataError(
        concat(variable_.name, " in ", file_.file().path(), " cannot be read as forecasts: ", why));
  }

  void add_dimension(int d) {
    const std::string& dimension = variable_.dimensions[static_cast<std::size_t>(d)];
    if (d == axes_.latitude || d == axes_.longitude || d == axes_.cells || d == axes_.level) return;
    if (d == axes_.version || d == axes_.channel) return;
    if (d == axes_.member) {
      found_.member = without_groups(dimension);
      found_.members = variable_.shape[d];
    } else if (const FileVariable* const along = file_.leads_along(dimension); along != nullptr) {
      if (leads_ != nullptr) refuse(concat("leads stand along ", found_.lead, " and along ", dimension));
      leads_ = along;
      found_.lead = without_groups(dimension);
    } else if (d == axes_.time || file_.counts_dates(dimension)) {
      if (!times_.empty()) refuse(concat("times stand along ", times_, " and along ", dimension));
      times_ = dimension;
    } else if (variable_.shape[d] != 1) {
      refuse(concat("nothing says what the ", variable_.shape[d], " entries of its dimension ", dimension,
                    " are; leads have a coordinate in hours or days, starts one with units such as \"hours "
                    "since 2021-01-01\""));
    }
  }

  void find_times() {
    const FileVariable* const start = times_.empty() || leads_ == nullptr ? file_.scalar_start() : nullptr;
    if (leads_ != nullptr) found_.leads = leads_of(file_, *leads_);
    if (times_.empty() && start == nullptr) return take_valid_times();
    const std::string& said = times_.empty() ? start->name : times_;
    found_.start = without_groups(times_);
    found_.times = said;
    found_.starts = file_.times(said);
    found_.calendar = file_.calendar(said);
    if (leads_ == nullptr && !times_.empty() && start != nullptr) return take_series(*start);
    if (leads_ == nullptr) found_.leads = {0};
    // One state may say both when it began and what it is of.
    const std::optional<std::string> valid =
        leads_ == nullptr && times_.empty() ? file_.times_of(variable_, axes_) : std::nullopt;
    if (valid && *valid != start->name) found_.leads = {file_.times(*valid).at(0) - found_.starts.at(0)};
    if (times_.empty() || found_.leads.size() > 1 || !file_.says_valid_times(times_)) return;
    for (Time& one : found_.starts) one -= found_.leads.front();
  }

  /// The times along which it stands are those that a single forecast is of.
  void take_series(const FileVariable& start) {
    found_.lead = std::exchange(found_.start, "");
    const Time first = file_.times(start.name).at(0);
    found_.leads = std::exchange(found_.starts, {first});
    for (Time& lead : found_.leads) lead -= first;
  }

  /// The start is known by what the leads are of alone.
  void take_valid_times() {
    const std::optional<std::string> valid = file_.times_of(variable_, axes_);
    if (!valid)
      refuse("nothing says when they start: a dimension of times, or a scalar forecast_reference_time");
    found_.times = *valid;
    found_.calendar = file_.calendar(*valid);
    const std::vector<Time> of = file_.times(*valid);
    if (leads_ == nullptr) {
      found_.leads = {0};
      found_.starts = of;
      return;
    }
    found_.starts = {of.at(0) - found_.leads.at(0)};
    for (std::size_t i = 0; i < found_.leads.size(); ++i) {
      if (i < of.size() && of[i] - found_.leads[i] == found_.starts[0]) continue;
      refuse(concat("its leads and the times that they are of, ", *valid, ", say different starts"));
    }
  }

  DataFile& file_;
  const FileVariable& variable_;
  FieldAxes axes_;
  ForecastAxes found_;
  const FileVariable* leads_ = nullptr;
  std::string times_;  ///< a dimension, with its groups
};

}  // namespace

ForecastAxes forecast_axes(DataFile& file, const FileVariable& variable) {
  ForecastAxes axes = Finder(file, variable).find();
  const auto index = [&](const char* what, const std::vector<Time>& times,
                         std::unordered_map<Time, std::int64_t>& places) {
    for (std::size_t i = 0; i < times.size(); ++i) {
      if (places.try_emplace(times[i], static_cast<std::int64_t>(i)).second) continue;
      throw DataError(concat(variable.name, " in ", file.file().path(), " cannot be read as forecasts: the ",
                             what, " number ", i + 1, " is that of number ", places.at(times[i]) + 1,
                             ", too"));
    }
  };
  index("start", axes.starts, axes.place_of_start);
  index("lead", axes.leads, axes.place_of_lead);
  return axes;
}

}  // namespace jigsaw::inline fields
