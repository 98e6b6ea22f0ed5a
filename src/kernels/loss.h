#pragma once
#include "array/array.h"

namespace jigsaw {

/// What is summed of the error e: e², |e|, or e itself (a bias; it has no gradient worth following).
enum class ErrorNorm : std::uint8_t { kSquared, kAbsolute, kSigned };

/// Weighted sums per sample and channel over the points held here, in float64.
struct LossSums {
  Array numerator;    ///< [b, c]: Σ weight · |prediction − target|^p over valid points
  Array denominator;  ///< [b, c]: Σ weight over valid points
};

/// @param prediction  [b, points…, c], f32, f64 or bf16.
/// @param target      the same shape, f32 or f64; NaN marks a point that does not count.
/// @param weight      [points], f64: weight of each point (zero in padding).
LossSums loss_sums(Context& context, ErrorNorm norm, const Array& prediction, const Array& target,
                   const Array& weight);

/// d loss / d prediction = factor[b, c] · weight · d|e|^p/de at valid points, else 0; of prediction's type.
/// @param factor  [b, c], f64.
Array loss_gradient(Context& context, ErrorNorm norm, const Array& prediction, const Array& target,
                    const Array& weight, const Array& factor);

}  // namespace jigsaw
