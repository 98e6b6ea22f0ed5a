#pragma once
#include <string>
#include <vector>

#include "config/json.h"

namespace jigsaw {

/// The dotted paths at which two resolved configurations differ, in the order of `before`, then keys
/// that only `after` has. Lists of one length that hold objects are compared entry by entry
/// (`optimizer.groups[0].match`), other lists as a whole. 1 and 1.0 are equal.
std::vector<std::string> changed_keys(const Json& before, const Json& after);

}  // namespace jigsaw
