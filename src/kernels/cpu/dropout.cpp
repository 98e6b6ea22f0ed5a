#include "kernels/cpu/dropout.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/cpu/vectorize.h"

namespace jigsaw::cpu {

namespace {

constexpr std::size_t kGroups = 16;
using Lanes = std::array<std::uint32_t, kGroups>;

/// One Philox round on sixteen counters.
inline void philox_round(std::array<Lanes, 4>& c, std::uint32_t key0, std::uint32_t key1) {
  for (std::size_t lane = 0; lane < kGroups; ++lane) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c[0][lane];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * c[2][lane];
    const std::uint32_t c1 = c[1][lane], c3 = c[3][lane];
    c[0][lane] = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ key0;
    c[1][lane] = static_cast<std::uint32_t>(p1);
    c[2][lane] = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ key1;
    c[3][lane] = static_cast<std::uint32_t>(p0);
  }
}

/// The words of sixteen groups from g on, as philox4x32 gives them (array/random.h), in the order of their
/// elements.
inline void random_words(const RandomStream& stream, const RandomPosition& position, std::uint64_t g,
                         std::array<std::uint32_t, 4 * kGroups>& words) {
  std::array<Lanes, 4> c;
  const std::array<std::uint32_t, 4> first = RandomStream::counter(position, 0);
  for (std::size_t lane = 0; lane < kGroups; ++lane) {
    c[0][lane] = static_cast<std::uint32_t>(g + lane);
    c[1][lane] = first[1] | static_cast<std::uint32_t>((g + lane) >> 32);
    c[2][lane] = first[2];
    c[3][lane] = first[3];
  }
  std::array<std::uint32_t, 2> key = stream.key();
  for (int round = 0; round < 10; ++round) {
    philox_round(c, key[0], key[1]);
    key = {key[0] + 0x9E3779B9U, key[1] + 0xBB67AE85U};
  }
  for (std::size_t lane = 0; lane < kGroups; ++lane) {
    for (std::size_t word = 0; word < 4; ++word) words[4 * lane + word] = c[word][lane];
  }
}

}  // namespace

DropoutMask::DropoutMask(const Dropout& dropout)
    : dropout_(dropout),
      threshold_(static_cast<std::uint32_t>(
          std::min(std::ceil(dropout.probability * 0x1p32), static_cast<double>(0xffffffffU)))),
      scale_(static_cast<float>(1.0 / (1.0 - dropout.probability))) {
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
    fill_run(position, element, count, factors);
    first += count, n -= count, factors += count;
  }
}

void DropoutMask::fill_run(const RandomPosition& position, std::int64_t element, std::int64_t n,
                           float* factors) const {
  constexpr std::int64_t kWords = 4 * kGroups;
  vectorized([=, this] {
    std::array<std::uint32_t, kWords> words;
    std::array<float, kWords> block;
    for (std::int64_t done = -(element % 4); done < n; done += kWords) {
      random_words(dropout_.stream, position, static_cast<std::uint64_t>((element + done) / 4), words);
      for (std::size_t i = 0; i < kWords; ++i) block[i] = words[i] >= threshold_ ? scale_ : 0.0F;
      const std::int64_t begin = std::max<std::int64_t>(done, 0), end = std::min(done + kWords, n);
      std::copy(block.begin() + (begin - done), block.begin() + (end - done), factors + begin);
    }
  });
}

}  // namespace jigsaw::cpu
