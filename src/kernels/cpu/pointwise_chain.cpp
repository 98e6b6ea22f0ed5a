#include "kernels/cpu/pointwise_chain.h"

#include <algorithm>
#include <array>
#include <optional>

#include "array/parallel.h"
#include "array/raw_memory.h"
#include "kernels/cpu/dropout.h"
#include "kernels/cpu/types.h"
#include "kernels/cpu/vector_math.h"
#include "kernels/cpu/vectorize.h"

namespace jigsaw::inline kernels::cpu {

namespace {

/// Elements that go through a chain together: their intermediate values stay in the first-level cache.
constexpr std::int64_t kBlock = 1024;
using Block = std::array<float, kBlock>;

/// values[j] += bias of element first + j.
inline void add_bias(const Spread& spread, const float* bias, std::int64_t first, std::int64_t n,
                     float* values) {
  std::int64_t within = first % spread.inner, k = first / spread.inner % spread.keep;
  for (std::int64_t i = 0; i < n;) {
    if (spread.inner == 1) {
      const std::int64_t end = std::min(n, i + spread.keep - k);
      for (std::int64_t j = i; j < end; ++j) values[j] += bias[k + j - i];
      i = end, k = 0;
    } else {
      const std::int64_t end = std::min(n, i + spread.inner - within);
      const float constant = bias[k];
      for (std::int64_t j = i; j < end; ++j) values[j] += constant;
      i = end, within = 0, k = k + 1 == spread.keep ? 0 : k + 1;
    }
  }
}

/// values = x + bias.
template <typename T>
inline void load(const PointwiseChain& chain, const Array& x, const Array& bias, std::int64_t first,
                 std::int64_t n, float* values) {
  const T* const from = x.data<T>() + first;
  for (std::int64_t i = 0; i < n; ++i) values[i] = static_cast<float>(from[i]);
  if (bias.defined()) add_bias(chain.spread, bias.data<float>(), first, n, values);
}

inline void activate(Activation activation, float* values, std::int64_t n) {
  with_activation(activation, [=](auto known) {
    for (std::int64_t i = 0; i < n; ++i) values[i] = activated<known()>(values[i]);
  });
}

/// values[i] = the derivative at values[i].
inline void differentiate(Activation activation, float* values, std::int64_t n) {
  with_activation(activation, [=](auto known) {
    for (std::int64_t i = 0; i < n; ++i) values[i] = activation_derivative<known()>(values[i]);
  });
}

inline void multiply(float* values, const float* factors, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) values[i] *= factors[i];
}

/// Calls f(first, n) for blocks of [0, count), on threads.
template <typename F>
void for_blocks(Context& context, std::int64_t count, const F& f) {
  for_ranges(threads_for(context, count, 1), count, kBlock, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t first = begin; first < end; first += kBlock) f(first, std::min(kBlock, end - first));
  });
}

template <typename T>
void forward_typed(Context& context, const PointwiseChain& chain, const Array& x, const Array& bias,
                   const Array& residual, Array& y) {
  std::optional<DropoutMask> mask;
  if (chain.dropout) mask.emplace(*chain.dropout);
  for_blocks(context, x.count(), [&](std::int64_t first, std::int64_t n) {
    Block values, factors;
    if (mask) mask->fill(first, n, factors.data());
    vectorized([&] {
      load<T>(chain, x, bias, first, n, values.data());
      activate(chain.activation, values.data(), n);
      if (mask) multiply(values.data(), factors.data(), n);
      const T* const add = residual.defined() ? residual.data<T>() + first : nullptr;
      T* const to = y.data<T>() + first;
      for (std::int64_t i = 0; add != nullptr && i < n; ++i)
        values[static_cast<std::size_t>(i)] += static_cast<float>(add[i]);
      for (std::int64_t i = 0; i < n; ++i) to[i] = rounded<T>(values[static_cast<std::size_t>(i)]);
    });
  });
}

template <typename T>
void backward_typed(Context& context, const PointwiseChain& chain, const Array& x, const Array& bias,
                    const Array& dy, Array& dx) {
  std::optional<DropoutMask> mask;
  if (chain.dropout) mask.emplace(*chain.dropout);
  for_blocks(context, dy.count(), [&](std::int64_t first, std::int64_t n) {
    Block values, factors;
    if (chain.activation == Activation::kNone) values.fill(1.0F);
    if (mask) mask->fill(first, n, factors.data());
    vectorized([&] {
      if (chain.activation != Activation::kNone) {
        load<T>(chain, x, bias, first, n, values.data());
        differentiate(chain.activation, values.data(), n);
      }
      if (mask) multiply(values.data(), factors.data(), n);
      const T* const from = dy.data<T>() + first;
      T* const to = dx.data<T>() + first;
      for (std::int64_t i = 0; i < n; ++i) {
        to[i] = rounded<T>(static_cast<float>(from[i]) * values[static_cast<std::size_t>(i)]);
      }
    });
  });
}

}  // namespace

void chain_forward(Context& context, const PointwiseChain& chain, const Array& x, const Array& bias,
                   const Array& residual, Array& y) {
  visit_fast(x.dtype(),
             [&](auto zero) { forward_typed<decltype(zero)>(context, chain, x, bias, residual, y); });
}

void chain_backward(Context& context, const PointwiseChain& chain, const Array& x, const Array& bias,
                    const Array& dy, Array& dx) {
  visit_fast(dy.dtype(), [&](auto zero) { backward_typed<decltype(zero)>(context, chain, x, bias, dy, dx); });
}

}  // namespace jigsaw::inline kernels::cpu
