#pragma once
#include <string>
#include <vector>

#include "proof/validator.h"

namespace jigsaw::inline proof {

/// The rules of every operation and what the validator says of them, for people. The last line is
/// "N operations, R rows: U unsound, I incomplete".
std::string report(const std::vector<Verdict>& verdicts);

/// Whether all is proven.
bool proven(const std::vector<Verdict>& verdicts);

}  // namespace jigsaw::inline proof
