#pragma once
#include <cmath>

#include "array/random.h"
#include "array/recorded_position.h"
#include "kernels/cuda/device.cuh"

namespace jigsaw::inline kernels::cuda {

/// The random numbers of array/random.h: the same bits as on the host.
struct RandomDraw {
  std::uint32_t key[2] = {};
  std::uint64_t step = 0, sample = 0, rollout = 0;
  const double* steps_later = nullptr;  ///< RecordedPosition; null: none

  /// The bits of elements 4g to 4g + 3, by Philox4x32-10.
  __device__ void group(std::uint64_t of_sample, std::uint64_t g, std::uint32_t (&c)[4]) const {
    c[0] = static_cast<std::uint32_t>(g);
    c[1] = static_cast<std::uint32_t>((g >> 32) & 0xffffU) | static_cast<std::uint32_t>(rollout << 16);
    c[2] = static_cast<std::uint32_t>(sample + of_sample);
    c[3] = static_cast<std::uint32_t>(
        steps_later == nullptr ? step : step + static_cast<std::uint64_t>(*steps_later));
    std::uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c[0], p1 = std::uint64_t{0xCD9E8D57} * c[2];
      c[0] = static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0;
      c[2] = static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1;
      c[1] = static_cast<std::uint32_t>(p1);
      c[3] = static_cast<std::uint32_t>(p0);
      k0 += 0x9E3779B9U;
      k1 += 0xBB67AE85U;
    }
  }
  /// RandomStream::normal().
  __device__ double normal(std::uint64_t of_sample, std::uint64_t element) const {
    std::uint32_t bits[4];
    group(of_sample, element / 2, bits);
    const std::uint32_t of_radius = element % 2 == 0 ? bits[0] : bits[2],
                        of_angle = element % 2 == 0 ? bits[1] : bits[3];
    return sqrt(-2.0 * log((of_radius + 1.0) * 0x1p-32)) *
           cos(2.0 * 3.14159265358979323846 * (of_angle * 0x1p-32));
  }
};

inline void place(Context& context, const RandomStream& stream, const RandomPosition& position,
                  RandomDraw& draw) {
  const Array& later = context.state<RecordedPosition>().steps_later;
  if (later.defined()) draw.steps_later = later.data<double>();
  draw.key[0] = stream.key()[0];
  draw.key[1] = stream.key()[1];
  draw.step = position.step;
  draw.sample = position.sample;
  draw.rollout = position.rollout;
}

/// Which elements dropout keeps.
struct DropoutDraw : RandomDraw {
  std::uint64_t threshold = 0;  ///< of 2³²: fewer bits are dropped
  double scale = 1;             ///< of what is kept

  /// What dropout multiplies a group's element `word` by.
  template <typename R>
  __device__ R factor_of(const std::uint32_t (&bits)[4], int word) const {
    const std::uint32_t own = word == 0 ? bits[0] : word == 1 ? bits[1] : word == 2 ? bits[2] : bits[3];
    return own >= threshold ? static_cast<R>(scale) : R(0);
  }
  /// What dropout multiplies elements by, from `element` on, which is a multiple of as many or of four;
  /// samples are counted from the position's.
  template <int kCount, typename R>
  __device__ void factors(std::uint64_t of_sample, std::uint64_t element, R (&factor)[kCount]) const {
    constexpr int kOfGroup = kCount < 4 ? kCount : 4;
    for (int first = 0; first < kCount; first += kOfGroup) {
      std::uint32_t bits[4];
      group(of_sample, element / 4 + first / 4, bits);
      for (int k = 0; k < kOfGroup; ++k)
        factor[first + k] = factor_of<R>(bits, kOfGroup < 4 ? static_cast<int>(element % 4) + k : k);
    }
  }
  __device__ double factor(std::uint64_t of_sample, std::uint64_t element) const {
    double one[1];
    factors(of_sample, element, one);
    return one[0];
  }
};

/// bits · 2⁻³² ≥ p as a comparison of integers, which rounds nothing.
inline DropoutDraw dropout_draw(Context& context, double probability, const RandomStream& stream,
                                const RandomPosition& position) {
  DropoutDraw draw;
  place(context, stream, position, draw);
  draw.threshold = static_cast<std::uint64_t>(std::ceil(probability * 0x1p32));
  draw.scale = 1.0 / (1.0 - probability);
  return draw;
}

}  // namespace jigsaw::inline kernels::cuda
