#pragma once
#include <string>
#include <vector>

#include "sweep/candidates.h"

namespace jigsaw::inline sweep {

/// The folder's name of a run in a sweep: what it sets, "embed_dim=96,learning_rate=0.001", each key by as
/// many of its last parts as tell it apart from the other keys of the sweep. "base" for a run that sets
/// nothing. Characters that file names should not have are left out, long names are cut; then a hash of all
/// that is set stands at the end, so that two runs never share a name.
///
/// @param keys  all keys that any run of the sweep sets.
std::string run_name(const Assignment& run, const std::vector<std::string>& keys);

}  // namespace jigsaw::inline sweep
