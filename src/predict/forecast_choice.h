#pragma once
#include <vector>

#include "predict/forecast.h"
#include "samples/dataset.h"

namespace jigsaw::inline predict {

/// When the forecasts start, ascending; of those that others began all the same, or those that are named.
/// @param first  steps that were made of these.
/// @throws ConfigError  for dates that are none, and starts that the file to go on from does not have;
/// DataError  where the files lack what a forecast is given.
std::vector<Time> starts_of(const Dataset& data, const ForecastOptions& options, int& first);

/// Numbers of the target channels that are asked for, ascending. @throws ConfigError
std::vector<int> channels_of(const std::vector<Channel>& targets, const ForecastOptions& options);

}  // namespace jigsaw::inline predict
