#pragma once
#include "array/array.h"
#include "kernels/window.h"

namespace jigsaw::inline kernels {

/// A convolution in 1 to 3 spatial dims. It pads with zeros only; whatever else it reads beyond a piece, an
/// exchange has put there.
struct Convolution {
  Window window;
  /// Each sees C/groups channels and makes O/groups; C groups are the depthwise convolution.
  std::int64_t groups = 1;
  /// Zeros read before the first and behind the last point of each spatial dim; empty: none.
  Shape low = {}, high = {};

  /// Number of places of the window along each dim of the padded field.
  Shape places(const Shape& space) const;
};

/// torch.nn.functional.conv1d, conv2d and conv3d of channels-last fields.
///
/// @param x       [B, space…, C]; f32, f64 or bf16. Any extent may be zero, a space smaller than the window
/// too.
/// @param weight  [O, C/groups, kernel…] as torch.nn.Conv's, of x's type.
/// @param bias    [O] of any float type, or undefined.
/// @param out     element type of y; sums are formed in f32 (f64 for f64).
/// @return        y [B, places(space)…, O].
/// @throws ShapeError when extents do not fit together.
Array convolution_forward(Context& context, const Convolution& convolution, const Array& x,
                          const Array& weight, const Array& bias, DType out);
/// The same into an array that is there, of y's shape.
void convolution_forward_into(Context& context, const Convolution& convolution, const Array& x,
                              const Array& weight, const Array& bias, Array& y);

/// The gradient of x: dx [B, space…, C] from dy [B, places…, O]. Points that no window reaches are zero.
///
/// It is also torch.nn.ConvTranspose's forward, with `weight` [C, O/groups, kernel…] as that has it, `dy` its
/// input and `space` its output's extents, any for which places(space) is the input's; then
/// convolution_forward is its backward, and its weight's gradient is convolution_backward_weight of `dy` the
/// input and `x` the output's gradient.
Array convolution_backward_data(Context& context, const Convolution& convolution, const Array& dy,
                                const Array& weight, const Shape& space, DType out);

/// The gradient of weight, [O, C/groups, kernel…], summed over samples and places.
Array convolution_backward_weight(Context& context, const Convolution& convolution, const Array& dy,
                                  const Array& x, DType out);
/// The same, added to `into` (of type f32 or f64), which no one else may be reading.
void convolution_backward_weight_add(Context& context, const Convolution& convolution, const Array& dy,
                                     const Array& x, Array& into);

}  // namespace jigsaw::inline kernels
