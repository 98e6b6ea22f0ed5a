#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "fields/data_options.h"
#include "times/time_axis.h"

namespace jigsaw::inline fields {

/// Where a time lies among those of a field: at one of its states, or between two.
struct TimePlace {
  std::size_t before = 0, after = 0;  ///< their numbers; one and the same where that state alone counts
  double part = 0;                    ///< of the way from the one to the other

  bool operator==(const TimePlace&) const = default;
};

/// The state or the two states that a field has at a time; nothing where it is not there.
///
/// @param times      of the field, ascending; of Between::kCycle they reach over less than a year.
/// @param calendar   that of `time`.
/// @param of_times   that of `times`: another one of Between::kCycle at most.
std::optional<TimePlace> place_among(const std::vector<Time>& times, Between between, Time time,
                                     Calendar calendar, Calendar of_times);

/// The same date and time of day a year later; of a day that this year lacks (29 February) its month's last.
Time year_after(Time time, Calendar calendar);
/// The time of the same date and time of day in the year that begins at `first`, in the calendar of that; of
/// a day which that year lacks its month's last.
Time in_year_from(Time first, Calendar of_first, Time time, Calendar calendar);
/// The time of the same date and time of day in another calendar; of a day that it lacks its month's last.
Time in_calendar(Time time, Calendar calendar, Calendar other);
/// The time in another calendar that is as far through the same month of the same year: of equally long
/// months the same date and time of day. Of ascending times those are too.
Time at_part_of_month(Time time, Calendar calendar, Calendar other);

/// Of a field's times those between which it is given, though they are much further apart than the others: by
/// more than three times the median of all steps. From the longest on; of Between::kCycle also across the
/// turn of the year.
std::vector<Period> wide_gaps(const std::vector<Time>& times, Between between, Calendar calendar);
/// The median of the steps between ascending times, the lower one of two; 0 without any.
Time median_step(const std::vector<Time>& times);

}  // namespace jigsaw::inline fields
