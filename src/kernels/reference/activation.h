#pragma once
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "kernels/pointwise.h"

namespace jigsaw::inline kernels::reference {

template <typename R>
R gelu(R x) {
  return R(0.5) * x * (R(1) + std::erf(x / std::numbers::sqrt2_v<R>));
}

/// Φ(x) + x·φ(x).
template <typename R>
R gelu_derivative(R x) {
  const R density = std::exp(R(-0.5) * x * x) / std::sqrt(R(2) * std::numbers::pi_v<R>);
  return R(0.5) * (R(1) + std::erf(x / std::numbers::sqrt2_v<R>)) + x * density;
}

template <typename R>
R sigmoid(R x) {
  return R(1) / (R(1) + std::exp(-x));
}

/// ln(1 + e^x).
template <typename R>
R softplus(R x) {
  return (x > R(0) ? x : R(0)) + std::log1p(std::exp(-std::abs(x)));
}

template <typename R>
R activated(Activation activation, R x) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kGelu:
      return gelu(x);
    case Activation::kRelu:
      return x < R(0) ? R(0) : x;
    case Activation::kSilu:
      return x * sigmoid(x);
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kSigmoid:
      return sigmoid(x);
    case Activation::kMish:
      return x * std::tanh(softplus(x));
    case Activation::kLeakyRelu:
      return x < R(0) ? R(0.01) * x : x;
  }
  fail("unknown activation");
}

template <typename R>
R activation_derivative(Activation activation, R x) {
  switch (activation) {
    case Activation::kNone:
      return R(1);
    case Activation::kGelu:
      return gelu_derivative(x);
    case Activation::kRelu:
      return x > R(0) ? R(1) : R(0);
    case Activation::kSilu:
      return sigmoid(x) * (R(1) + x * sigmoid(-x));
    case Activation::kTanh:
      return R(1) / (std::cosh(x) * std::cosh(x));
    case Activation::kSigmoid:
      return sigmoid(x) * sigmoid(-x);
    case Activation::kMish: {
      const R width = std::cosh(softplus(x));
      return std::tanh(softplus(x)) + x * sigmoid(x) / (width * width);
    }
    case Activation::kLeakyRelu:
      return x > R(0) ? R(1) : R(0.01);
  }
  fail("unknown activation");
}

}  // namespace jigsaw::inline kernels::reference
