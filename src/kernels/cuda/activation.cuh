#pragma once
#include "kernels/cuda/device.cuh"
#include "kernels/pointwise.h"

namespace jigsaw::inline kernels::cuda {

template <typename R>
__device__ R sigmoid(R x) {
  return R(1) / (R(1) + exp(-x));
}

/// Φ(x), the standard normal distribution.
template <typename R>
__device__ R normal_distribution(R x) {
  return R(0.5) * (R(1) + erf(x * R(0.70710678118654752440)));
}

/// ln(1 + e^x).
template <typename R>
__device__ R softplus(R x) {
  return (x > R(0) ? x : R(0)) + log1p(exp(x > R(0) ? -x : x));
}

template <typename R>
__device__ R activated(Activation activation, R x) {
  switch (activation) {
    case Activation::kNone:
      break;
    case Activation::kGelu:
      return x * normal_distribution(x);
    case Activation::kRelu:
      return x < R(0) ? R(0) : x;
    case Activation::kSilu:
      return x * sigmoid(x);
    case Activation::kTanh:
      return tanh(x);
    case Activation::kSigmoid:
      return sigmoid(x);
    case Activation::kMish:
      return x * tanh(softplus(x));
    case Activation::kLeakyRelu:
      return x < R(0) ? R(0.01) * x : x;
  }
  return x;
}

template <typename R>
__device__ R activation_derivative(Activation activation, R x) {
  switch (activation) {
    case Activation::kNone:
      break;
    case Activation::kGelu:
      return normal_distribution(x) + x * exp(R(-0.5) * x * x) * R(0.39894228040143267794);
    case Activation::kRelu:
      return x > R(0) ? R(1) : R(0);
    case Activation::kSilu:
      return sigmoid(x) * (R(1) + x * sigmoid(-x));
    case Activation::kTanh: {
      const R width = cosh(x);
      return R(1) / (width * width);
    }
    case Activation::kSigmoid:
      return sigmoid(x) * sigmoid(-x);
    case Activation::kMish: {
      const R inner = tanh(softplus(x));
      return inner + x * sigmoid(x) * (R(1) - inner * inner);
    }
    case Activation::kLeakyRelu:
      return x > R(0) ? R(1) : R(0.01);
  }
  return R(1);
}

template <Activation activation>
struct KnownActivation {
  static constexpr Activation kValue = activation;
};
/// Calls f with the activation as a type, so that what f does to many elements is decided once.
template <typename F>
__device__ void with_known(Activation activation, const F& f) {
  switch (activation) {
    case Activation::kNone:
      return f(KnownActivation<Activation::kNone>{});
    case Activation::kGelu:
      return f(KnownActivation<Activation::kGelu>{});
    case Activation::kRelu:
      return f(KnownActivation<Activation::kRelu>{});
    case Activation::kSilu:
      return f(KnownActivation<Activation::kSilu>{});
    case Activation::kTanh:
      return f(KnownActivation<Activation::kTanh>{});
    case Activation::kSigmoid:
      return f(KnownActivation<Activation::kSigmoid>{});
    case Activation::kMish:
      return f(KnownActivation<Activation::kMish>{});
    case Activation::kLeakyRelu:
      return f(KnownActivation<Activation::kLeakyRelu>{});
  }
}

}  // namespace jigsaw::inline kernels::cuda
