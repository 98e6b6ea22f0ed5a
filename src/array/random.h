#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace jigsaw::inline array {

/// What random numbers are used for: streams of different purposes never meet.
enum class RandomPurpose : std::uint8_t {
  kInitialValue,
  kDropout,
  kNoise,
  kShuffle,
  kCrop,
  kRollout,
  kSampleData
};

/// Which step, sample and rollout step a random number belongs to.
struct RandomPosition {
  std::uint64_t step = 0;     ///< training step, below 2^32
  std::uint64_t sample = 0;   ///< global sample in the step, below 2^32
  std::uint64_t rollout = 0;  ///< rollout step, below 2^16
};

/// Random numbers that are a pure function of (seed, purpose, path; step, sample, rollout step,
/// global element), hence equal on every mesh and repeatable when a block is recomputed.
///
/// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): the key
/// is a 64-bit hash of (seed, purpose, path); the 128-bit counter holds, from its low end, the
/// element's group of four (48 bits), the rollout step (16), the sample (32) and the step (32).
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, RandomPurpose purpose, std::string_view path);

  /// 32 random bits of the element. Elements are below 2^50.
  std::uint32_t bits(const RandomPosition& position, std::uint64_t element) const;
  /// The four words of elements 4g to 4g+3.
  std::array<std::uint32_t, 4> group(const RandomPosition& position, std::uint64_t g) const;
  /// What philox4x32 makes group() of, for code that runs it over many groups at once.
  static std::array<std::uint32_t, 4> counter(const RandomPosition& position, std::uint64_t g);
  const std::array<std::uint32_t, 2>& key() const { return key_; }
  /// Uniform in [0, 1) with 32 bits.
  double uniform(const RandomPosition& position, std::uint64_t element) const;
  /// Standard normal (Box-Muller over the element's pair of words 2e and 2e+1).
  double normal(const RandomPosition& position, std::uint64_t element) const;

 private:
  std::array<std::uint32_t, 2> key_;
};

/// The raw generator: ten rounds on a counter under a key.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key);

}  // namespace jigsaw::inline array
