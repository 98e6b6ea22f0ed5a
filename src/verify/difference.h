#pragma once
#include <string>

#include "verify/tolerance.h"

namespace jigsaw::inline verify {

/// The first operation whose result, or whose result's gradient, differs between a run and the one it should
/// equal, by the fingerprints of one step; "" when none does.
std::string first_difference(const RecordedRun& tested, const RecordedRun& reference,
                             const RecordedRun& perturbed, const Tolerances& tolerances);

}  // namespace jigsaw::inline verify
