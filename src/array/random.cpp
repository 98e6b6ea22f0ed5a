#include "array/random.h"

#include <cmath>
#include <numbers>

#include "base/text.h"

namespace jigsaw::inline array {

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> c, std::array<std::uint32_t, 2> k) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k[1], static_cast<std::uint32_t>(p0)};
    k = {k[0] + 0x9E3779B9U, k[1] + 0xBB67AE85U};
  }
  return c;
}

namespace {

/// SplitMix64's finaliser: every bit of the input reaches every bit of the result.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

}  // namespace

RandomStream::RandomStream(std::uint64_t seed, RandomPurpose purpose, std::string_view path) {
  const std::uint64_t key = mix(mix(mix(seed) ^ static_cast<std::uint64_t>(purpose)) ^ stable_hash(path));
  key_ = {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)};
}

std::array<std::uint32_t, 4> RandomStream::counter(const RandomPosition& position, std::uint64_t g) {
  return {
      static_cast<std::uint32_t>(g),
      static_cast<std::uint32_t>((g >> 32) & 0xffffU) | static_cast<std::uint32_t>(position.rollout << 16),
      static_cast<std::uint32_t>(position.sample), static_cast<std::uint32_t>(position.step)};
}

std::array<std::uint32_t, 4> RandomStream::group(const RandomPosition& position, std::uint64_t g) const {
  return philox4x32(counter(position, g), key_);
}

std::uint32_t RandomStream::bits(const RandomPosition& position, std::uint64_t element) const {
  return group(position, element / 4)[element % 4];
}

double RandomStream::uniform(const RandomPosition& position, std::uint64_t element) const {
  return bits(position, element) * 0x1p-32;
}

double RandomStream::normal(const RandomPosition& position, std::uint64_t element) const {
  const auto words = group(position, element / 2);
  const std::size_t first = element % 2 * 2;
  const double radius = std::sqrt(-2.0 * std::log((words[first] + 1.0) * 0x1p-32));
  return radius * std::cos(2.0 * std::numbers::pi * (words[first + 1] * 0x1p-32));
}

}  // namespace jigsaw::inline array
