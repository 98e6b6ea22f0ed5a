#pragma once
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "samples/dataset.h"

namespace jigsaw::inline samples {

/// Of each prescribed variable that is given across gaps in its files (wide_gaps()), as far as these lie in
/// the periods, a sentence that says the longest one, how long it is, and the usual step.
std::vector<std::string> gap_remarks(const Dataset& data, const std::vector<Period>& used);

/// Of each prescribed variable that is of forecasts of one lead (VariableOptions::lead) which this many steps
/// reach beyond, a sentence: later steps are given forecasts that began after their own start.
std::vector<std::string> later_start_remarks(const Dataset& data, std::int64_t steps);

/// Of each prescribed variable that had no value anywhere at some of the times which ranks have read since
/// FileSet::watch(), a sentence that says the first of them. The same on all ranks. Collective.
/// @param times  that may have been read.
std::vector<std::string> blank_remarks(const Dataset& data, std::vector<Time> times, Communicator& world);

/// All leads of forecasts, from time 0 or lead number `first` on.
std::vector<Time> times_of_forecasts(const Dataset& data, const std::vector<Time>& starts, int leads,
                                     int first = 0);

}  // namespace jigsaw::inline samples
