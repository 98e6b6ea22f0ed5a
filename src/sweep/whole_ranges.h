#pragma once
#include <functional>

#include "sweep/candidates.h"

namespace jigsaw::inline sweep {

/// Ranges over keys of whole numbers give whole numbers, whether or not they say "integer": those in which
/// the configuration takes a whole number and not the one halfway to the next.
///
/// @param accepts  whether the configuration takes what a run sets.
void draw_whole_numbers(SearchSpace& space, const std::function<bool(const Assignment&)>& accepts);

/// What is to be said behind the error of a run whose draws were refused because they are no whole numbers;
/// "" where that is not why.
std::string wants_whole_numbers(const SearchSpace& space, const Assignment& run,
                                const std::function<bool(const Assignment&)>& accepts);

}  // namespace jigsaw::inline sweep
