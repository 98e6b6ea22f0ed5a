#pragma once
#include <vector>

#include "sweep/search_space.h"

namespace jigsaw::inline sweep {

/// What one run of a sweep sets: values by dotted key of the configuration, in alphabetical order.
using Assignment = std::map<std::string, Json>;

/// The runs of a search, each once: of a grid every combination, the last key in the alphabet varying
/// fastest; of draws the first `count`, of which each is a function of the seed and its number alone. Where
/// combinations differ only in keys whose `when` does not hold, one run remains. Draws that come again are
/// made up for by further ones where a range has numbers without end, unless that hardly ever gives another:
/// then, and of lists, there are fewer than `count`.
///
/// @param base  the configuration, whose values `when` sees where the sweep sets none.
/// @throws ConfigError  when a `when` depends on keys in a circle.
std::vector<Assignment> candidates(const SearchSpace& space, const Json& base);

}  // namespace jigsaw::inline sweep
