#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "times/time_axis.h"

namespace jigsaw::inline predict {

/// A mean over the steps of a period of the calendar.
struct CalendarMean {
  int first = 1, last = 1;  ///< steps
  Period span;              ///< from where to where it is, in seconds from the start

  bool operator==(const CalendarMean&) const = default;
};

/// Which steps of a forecast its file holds, and as what. Steps count from the start, 1 for the first one.
struct WrittenLeads {
  int first = 0;          ///< steps that were made before, of which the file holds none
  int last = 1;           ///< the last step that is made
  int every = 1;          ///< of steps those that are multiples of it; or, of means, over so many each
  bool means = false;     ///< over steps first + 1 … first + every, and so on; a rest has none
  std::string unit = {};  ///< of means: "month", …, where they are `periods` in place of so many steps; or ""
  std::vector<CalendarMean> periods = {};  ///< ascending, between first and last
  bool lacks_start = false;                ///< the first of them, of which the state at the start is, too

  /// Leads of the file.
  int count() const { return count_until(last); }
  /// Those that end up to a step.
  int count_until(int step) const;
  /// The step that lead number `lead` (from 0 on) of the file is of; of a mean its last one.
  int step_of(int lead) const;
  /// The first step that it is of.
  int first_of(int lead) const;
  /// The lead that this step ends; nothing where the file has none then.
  std::optional<int> lead_of(int step) const;
  /// Whether anything in the file is made of this step.
  bool has(int step) const;
  /// As the command line has it: "--mean month", "--every 4"; "" where each step is a lead.
  std::string option() const;
};

}  // namespace jigsaw::inline predict
