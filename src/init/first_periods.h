#pragma once
#include <string>
#include <vector>

#include "times/time_axis.h"

namespace jigsaw::inline init {

/// The windows of a first configuration, and the periods of training and validation, which both hold some.
struct FirstPeriods {
  std::vector<Time> input_times;  ///< from time 0
  Time lead_time = 0;
  Time step = 0;        ///< the usual one between times
  bool even = true;     ///< and the only one
  Period train, valid;  ///< so far apart that no window reaches into both
};

/// @param times    that all fields have, ascending.
/// @param what     has them: "t2m in a.nc".
/// @param notices  are told of times that are not evenly spaced, and how many of them can be used.
/// @throws DataError  where no windows, or those of one period alone, can be made of them.
FirstPeriods first_periods(const std::vector<Time>& times, const std::string& what, Calendar calendar,
                           std::vector<std::string>& notices);

/// As a configuration has them: [-6, 0], ["-5 min", 0].
std::string durations_text(const std::vector<Time>& times);

}  // namespace jigsaw::inline init
