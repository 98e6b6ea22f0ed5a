#pragma once
#include "array/array.h"
#include "array/box.h"
#include "kernels/window.h"

namespace jigsaw::inline kernels {

/// A pooling in 1 to 3 spatial dims over fields that may bring their padding along: what lies outside `valid`
/// is never read.
struct Pooling {
  Window window;
  Box valid;  ///< spatial region of the array handed in that holds points; the rest is padding
  bool count_padding = false;  ///< average: padding counts as zeros (torch's count_include_pad)
};

/// Type of the array of winners of a maximum: numbers of points of the window, which it holds exactly.
DType winner_type(const Window& window);

/// torch.nn.functional.max_pool1d, max_pool2d and max_pool3d (ceil_mode off) of channels-last fields.
///
/// @param x        [B, space…, C], f32, f64 or bf16.
/// @param winners  set to [B, places…, C] of winner_type(): which point of the window, row-major, is the
///                 largest; the first of equals, a NaN before all others. Backward needs nothing else.
/// @return         y [B, window.places(space)…, C] of x's type; −∞, without a winner, where a window holds
///                 no valid point.
Array max_pool_forward(Context& context, const Pooling& pooling, const Array& x, Array& winners);
/// The same into arrays that are there, of y's shape.
void max_pool_forward_into(Context& context, const Pooling& pooling, const Array& x, Array& winners,
                           Array& y);
/// dx [B, space…, C]: each place's dy goes to its winner; zero in the padding.
Array max_pool_backward(Context& context, const Pooling& pooling, const Array& dy, const Array& winners,
                        const Shape& space);

/// torch.nn.functional.avg_pool1d, avg_pool2d and avg_pool3d (ceil_mode off) of channels-last fields: the sum
/// of a window's valid points over their number, or over the window's with count_padding. Zero where a window
/// holds none. Sums are formed in f32 (f64 for f64), which go on into f64 where points are many.
Array average_pool_forward(Context& context, const Pooling& pooling, const Array& x);
/// The same into an array that is there, of y's shape.
void average_pool_forward_into(Context& context, const Pooling& pooling, const Array& x, Array& y);
/// dx [B, space…, C]; zero in the padding.
Array average_pool_backward(Context& context, const Pooling& pooling, const Array& dy, const Shape& space);

}  // namespace jigsaw::inline kernels
