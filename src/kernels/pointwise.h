#pragma once
#include <optional>
#include <type_traits>

#include "array/array.h"
#include "array/box.h"
#include "array/random.h"

namespace jigsaw::inline kernels {

/// torch.nn's GELU (the exact one, x·Φ(x)), ReLU, SiLU (x·σ(x)), Tanh, Sigmoid (σ), Mish (x·tanh(ln(1 +
/// e^x)), Misra 2020, arXiv 1908.08681) and LeakyReLU with its slope of 0.01 where x is negative.
enum class Activation : std::uint8_t { kNone, kGelu, kRelu, kSilu, kTanh, kSigmoid, kMish, kLeakyRelu };
/// Operations that an element is counted as.
double flops_of(Activation activation);
/// Calls f with the activation as a type, an integral constant, so that loops over elements are compiled for
/// each.
template <typename F>
void with_activation(Activation activation, const F& f) {
  switch (activation) {
    case Activation::kNone:
      return f(std::integral_constant<Activation, Activation::kNone>{});
    case Activation::kGelu:
      return f(std::integral_constant<Activation, Activation::kGelu>{});
    case Activation::kRelu:
      return f(std::integral_constant<Activation, Activation::kRelu>{});
    case Activation::kSilu:
      return f(std::integral_constant<Activation, Activation::kSilu>{});
    case Activation::kTanh:
      return f(std::integral_constant<Activation, Activation::kTanh>{});
    case Activation::kSigmoid:
      return f(std::integral_constant<Activation, Activation::kSigmoid>{});
    case Activation::kMish:
      return f(std::integral_constant<Activation, Activation::kMish>{});
    case Activation::kLeakyRelu:
      return f(std::integral_constant<Activation, Activation::kLeakyRelu>{});
  }
}

/// How a small operand spreads over a large one: the large one's elements are [outer][keep][inner],
/// the small one's are [keep]. A bias over the last dim has inner = 1.
struct Spread {
  std::int64_t outer = 1, keep = 1, inner = 1;
};

/// Dropout whose mask is a function of the global element, hence equal on every mesh.
struct Dropout {
  double probability = 0;
  RandomStream stream;
  RandomPosition position;     ///< sample: of global index 0 of dim 0
  Shape global;                ///< global shape; dim 0 is the sample
  Box piece;                   ///< which part of it is here
  bool whole_samples = false;  ///< each sample is kept or dropped as a whole, by its element 0 (drop path)
};

/// y = residual + dropout(activation(x + bias)), each part optional: the memory-bound end of a linear layer
/// in one pass. Kept elements are scaled by 1/(1 − p) (torch.nn.Dropout).
struct PointwiseChain {
  Activation activation = Activation::kNone;
  std::optional<Dropout> dropout;
  Spread spread;  ///< of the bias over x

  bool linear() const { return activation == Activation::kNone && !dropout; }
};

/// @param x         any shape.
/// @param bias      [keep] as in chain.spread, or undefined.
/// @param residual  shape and type of x, or undefined.
Array pointwise_forward(Context& context, const PointwiseChain& chain, const Array& x, const Array& bias,
                        const Array& residual);
/// dx = dy · dropout mask · activation'(x + bias), of dy's type and x's shape. For a linear chain call
/// nothing: dx is dy.
/// @param dy  is written over when no one else holds it.
Array pointwise_backward(Context& context, const PointwiseChain& chain, const Array& x, const Array& bias,
                         Array dy);

/// Sum over outer and inner: [keep], f32 (f64 for f64).
Array sum_spread(Context& context, const Spread& spread, const Array& x);
/// y = x · factor[keep] spread over x, of x's type; factor of any float type.
Array scale_spread(Context& context, const Spread& spread, const Array& x, const Array& factor);

/// torch.nn.PReLU (He et al. 2015): y = x where x > 0, and slope·x elsewhere, of x's type.
/// @param slope  [keep] spread over x, of any float type.
Array prelu_forward(Context& context, const Spread& spread, const Array& x, const Array& slope);
struct PreluGradients {
  Array dx;      ///< of dy's type, x's shape
  Array dslope;  ///< [keep], f32 (f64 for f64)
};
PreluGradients prelu_backward(Context& context, const Spread& spread, const Array& dy, const Array& x,
                              const Array& slope);

/// a + b, elementwise, of equal shape and type.
Array add(Context& context, const Array& a, const Array& b);
/// into += x; x may be of another float type.
void accumulate(Context& context, Array& into, const Array& x);
/// x *= factor, in place.
void scale(Context& context, Array& x, double factor);
/// Every element the same.
Array filled(Context& context, const Shape& shape, DType dtype, double value,
             Purpose purpose = Purpose::kActivations);
/// The same numbers in another type; the array itself if it has it already.
Array cast(Context& context, const Array& x, DType dtype, Purpose purpose = Purpose::kActivations);
/// The same into an array that is there, of another type and as many elements.
void cast_into(Context& context, const Array& x, Array& y);

}  // namespace jigsaw::inline kernels
