#pragma once
#include <vector>

#include "samples/channels.h"
#include "samples/statistics.h"

namespace jigsaw::inline predict {

/// Whether states of a channel may leave the range of float32: those of a few hundred thousand deviations
/// would be infinite, or those of a millionth of one denormal, which count as 0.
bool leaves_single_range(const Channel& channel, const FieldStatistics& field);

/// Whether states of a channel are written as float64: they may leave the range of float32, or its roundings
/// about the mean are more than a thousandth of the deviation, as of 2.7 K with deviations of 1e-5 K.
bool needs_double_precision(const Channel& channel, const FieldStatistics& field);

/// @throws ConfigError  when one of the channels that are written, as float32, leaves_single_range().
void require_single_range(const std::vector<Channel>& targets, const std::vector<int>& written,
                          const Statistics& statistics);

}  // namespace jigsaw::inline predict
