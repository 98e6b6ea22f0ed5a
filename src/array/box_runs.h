#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "array/box.h"

namespace jigsaw::inline array {

/// Elements [first, first + count) of a box, row-major, as boxes that follow one another in it: each is
/// consecutive there, and there are at most 2·rank − 1.
std::vector<Box> boxes_of_run(const Box& box, std::int64_t first, std::int64_t count);

/// Calls f(first element in `a`, first element in `b`, count) for the runs of `part` that are consecutive
/// both in `a` and in `b`, row-major, as long as they can be. `part` lies in both.
void for_each_common_run(const Box& part, const Box& a, const Box& b,
                         const std::function<void(std::int64_t, std::int64_t, std::int64_t)>& f);

}  // namespace jigsaw::inline array
