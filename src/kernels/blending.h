#pragma once
#include "array/array.h"
#include "array/box.h"

namespace jigsaw::inline kernels {

/// target[to] += weight · values, in float64, each point with its weight: what a part of a window gives to
/// the sums of the windows that overlap. Calls one after the other add in their order.
///
/// @param values   [points…, c] of any float type: of the part.
/// @param weights  f64, of the points of a whole window. @param of  the part in it, [points…].
/// @param target   f64. @param to  the part in it, [points…, c].
/// @param mirrored bit d: along dim d of the points values run backwards, the first one being that of the
///                 last point.
/// @throws ShapeError  when they do not fit.
void add_weighted(Context& context, const Array& values, const Array& weights, const Box& of, Array& target,
                  const Box& to, unsigned mirrored = 0);

}  // namespace jigsaw::inline kernels
