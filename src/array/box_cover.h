#pragma once
#include <vector>

#include "array/box.h"

namespace jigsaw::inline array {

/// Whether boxes, each inside of `whole`, make it up: together they hold each element once. The order does
/// not matter; n boxes that ranks have cut take about n log n steps.
bool make_up(const Box& whole, std::vector<Box> parts);

}  // namespace jigsaw::inline array
