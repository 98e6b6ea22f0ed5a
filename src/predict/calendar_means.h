#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "predict/written_leads.h"
#include "times/time_axis.h"

namespace jigsaw::inline predict {

/// A part of the calendar. Seasons are DJF, MAM, JJA and SON; that of a December reaches into the next year.
enum class CalendarUnit : std::uint8_t { kDay, kMonth, kSeason, kYear };
/// "day", "month", "season" or "year"; nothing for another word.
std::optional<CalendarUnit> parse_calendar_unit(const std::string& word);
const char* name(CalendarUnit unit);

/// The one that a time lies in: from its first moment to that of the next one.
Period unit_around(Time time, CalendarUnit unit, Calendar calendar);

/// Which steps of a forecast there are, and of what times.
struct ForecastSteps {
  Time start = 0, step = 6 * kHour;
  int first = 0, last = 1;  ///< those behind the first one, up to the last
  Calendar calendar = Calendar::kStandard;
  /// From where to where a state holds, from its time, where that is known: it counts where the middle of it
  /// lies, and means reach from the beginning of their first state's to the end of their last one's.
  std::optional<Period> limits = {};
};
/// Means over those units of which all states are among the steps: none that begins before them, but for the
/// start itself, which no forecast has, and none that ends behind them.
std::vector<CalendarMean> calendar_means(const ForecastSteps& steps, CalendarUnit unit);
/// Whether the first of them lacks the state at the start, which is of it, too.
bool lacks_start(const ForecastSteps& steps, CalendarUnit unit);
/// Whether a step is no longer than any such unit.
bool divides(Time step, CalendarUnit unit, Calendar calendar);

}  // namespace jigsaw::inline predict
