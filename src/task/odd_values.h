#pragma once
#include <optional>
#include <string>

#include "samples/statistics.h"

namespace jigsaw::inline task {

/// A warning that names the variables whose least or largest value in data.train is a number that files fill
/// gaps with (−9999, 1e20, 9.96921e36, …), or lies beyond the mean by more than a hundred deviations; of
/// variables that are never below 0, as rain, the largest one may. Of values that are transformed nothing is
/// said. Nothing where no variable is odd.
std::optional<std::string> odd_values_warning(const Statistics& statistics);

}  // namespace jigsaw::inline task
