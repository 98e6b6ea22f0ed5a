#pragma once
#include <string>
#include <vector>

#include "sweep/candidates.h"
#include "task/configuration.h"

namespace jigsaw::inline sweep {

/// A sentence on keys that the runs set to several values and by which the metric is another quantity in each
/// of them, so that its values do not say which run is better; "" where there are none.
/// @param base  the configuration that they are changes of.
std::string comparison_remark(const SearchSpace& space, const std::vector<Assignment>& runs,
                              const Configuration& base);

}  // namespace jigsaw::inline sweep
