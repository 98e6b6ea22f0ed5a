#include "kernels/cpu/dropout.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "kernels/cpu/vectorize.h"

namespace jigsaw::inline kernels::cpu {

namespace {

/// Elements whose numbers are made together, and the groups of four that they and their neighbours may touch.
constexpr std::int64_t kTogether = 1024, kGroups = kTogether / 4 + 1;

/// The words of Philox4x32-10 (array/random.h), each in 64 bits, where products of words need no packing.
struct Counter {
  std::uint64_t c0, c1, c2, c3;
};

inline Counter philox_round(const Counter& c, std::uint32_t key0, std::uint32_t key1) {
  constexpr std::uint64_t kWord = 0xffffffffU;
  const std::uint64_t p0 = 0xD2511F53U * c.c0, p1 = 0xCD9E8D57U * c.c2;
  return {(p1 >> 32) ^ c.c1 ^ key0, p1 & kWord, (p0 >> 32) ^ c.c3 ^ key1, p0 & kWord};
}

/// Ten rounds written out, so that the loop around them is the one that is vectorised.
template <std::uint32_t... kRound>
inline Counter philox(Counter c, std::uint32_t key0, std::uint32_t key1,
                      std::integer_sequence<std::uint32_t, kRound...>) {
  ((c = philox_round(c, key0 + kRound * 0x9E3779B9U, key1 + kRound * 0xBB67AE85U)), ...);
  return c;
}

/// factors[4·i + word] of the groups from `first` on: scale where the word is not below the threshold.
inline void keep_factors(const RandomStream& stream, const RandomPosition& position, std::uint64_t first,
                         std::int64_t groups, std::uint32_t threshold, float scale, float* factors) {
  const auto [unused, high, sample, step] = RandomStream::counter(position, 0);
  const auto [key0, key1] = stream.key();
  for (std::int64_t i = 0; i < groups; ++i) {
    const std::uint64_t g = first + static_cast<std::uint64_t>(i);
    const Counter counter = {g & 0xffffffffU, high | g >> 32, sample, step};
    const Counter words = philox(counter, key0, key1, std::make_integer_sequence<std::uint32_t, 10>());
    factors[4 * i] = static_cast<std::uint32_t>(words.c0) >= threshold ? scale : 0.0F;
    factors[4 * i + 1] = static_cast<std::uint32_t>(words.c1) >= threshold ? scale : 0.0F;
    factors[4 * i + 2] = static_cast<std::uint32_t>(words.c2) >= threshold ? scale : 0.0F;
    factors[4 * i + 3] = static_cast<std::uint32_t>(words.c3) >= threshold ? scale : 0.0F;
  }
}

}  // namespace

void dropout_factors(const RandomStream& stream, const RandomPosition& position, std::int64_t first,
                     std::int64_t n, double probability, float* factors) {
  // Words below are dropped.
  const auto threshold =
      static_cast<std::uint32_t>(std::min(std::ceil(probability * 0x1p32), static_cast<double>(0xffffffffU)));
  const auto scale = static_cast<float>(1.0 / (1.0 - probability));
  std::array<float, 4 * kGroups> groups;
  for (std::int64_t done = 0; done < n; done += kTogether) {
    const std::int64_t count = std::min(kTogether, n - done), begin = first + done, skip = begin % 4;
    vectorized([&] {
      keep_factors(stream, position, static_cast<std::uint64_t>(begin / 4), (skip + count + 3) / 4, threshold,
                   scale, groups.data());
    });
    std::copy_n(groups.begin() + skip, count, factors + done);
  }
}

DropoutMask::DropoutMask(const Dropout& dropout) : dropout_(dropout) {
  const Shape& extent = dropout.piece.extent;
  run_dim_ = extent.rank();
  for (bool whole = true; run_dim_ > 1 && whole; --run_dim_) {
    run_ *= extent[run_dim_ - 1];
    whole = extent[run_dim_ - 1] == dropout.global[run_dim_ - 1];
  }
}

void DropoutMask::fill(std::int64_t first, std::int64_t n, float* factors) const {
  const Box& piece = dropout_.piece;
  const Shape strides = dropout_.global.strides();
  while (n > 0) {
    std::int64_t index = first / run_;
    const std::int64_t within = first % run_;
    std::int64_t element = within;
    for (int dim = piece.extent.rank() - 1; dim >= 1; --dim) {
      element += piece.begin[dim] * strides[dim];
      if (dim >= run_dim_) continue;
      element += index % piece.extent[dim] * strides[dim];
      index /= piece.extent[dim];
    }
    RandomPosition position = dropout_.position;
    if (piece.extent.rank() > 0) position.sample += static_cast<std::uint64_t>(piece.begin[0] + index);
    const std::int64_t count = std::min(n, run_ - within);
    if (dropout_.whole_samples) {
      float factor = 0.0F;
      dropout_factors(dropout_.stream, position, 0, 1, dropout_.probability, &factor);
      std::fill_n(factors, count, factor);
    } else {
      dropout_factors(dropout_.stream, position, element, count, dropout_.probability, factors);
    }
    first += count, n -= count, factors += count;
  }
}

}  // namespace jigsaw::inline kernels::cpu
