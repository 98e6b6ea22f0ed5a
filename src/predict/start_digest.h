#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "array/box.h"
#include "comm/communicator.h"

namespace jigsaw::inline predict {

/// Numbers by which the states that forecasts start from are known again, whatever ranks hold their pieces:
/// for each sample a sum over points and channels, modulo 2³², of a hash of the value and its place. Values
/// count to 16 bits, so that roundings of what was brought from another grid seldom make another number.
/// Collective.
///
/// @param box, values  this rank's piece of a tensor [samples, rows, columns, C], of which each point lies on
/// one rank; row-major. @param counts  which of the C channels count.
std::vector<double> start_digests(Communicator& world, std::int64_t samples, const Box& box,
                                  std::span<const double> values, const std::vector<bool>& counts);

}  // namespace jigsaw::inline predict
