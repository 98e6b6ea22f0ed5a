#include "predict/start_digest.h"

#include <bit>
#include <cmath>

namespace jigsaw::inline predict {

namespace {

/// The finaliser of SplitMix64 (Steele, Lea and Flood 2014).
std::uint64_t mixed(std::uint64_t bits) {
  bits = (bits ^ (bits >> 30U)) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ (bits >> 27U)) * 0x94d049bb133111ebU;
  return bits ^ (bits >> 31U);
}

/// Sign, exponent and 15 bits behind the first; all that is missing is one, and so are both zeros.
std::uint64_t known_bits(double value) {
  if (std::isnan(value)) return 0xffffffffU;
  if (value == 0) return 0;
  return (std::uint64_t{std::bit_cast<std::uint32_t>(static_cast<float>(value))} + 0x80U) >> 8U;
}

}  // namespace

std::vector<double> start_digests(Communicator& world, std::int64_t samples, const Box& box,
                                  std::span<const double> values, const std::vector<bool>& counts) {
  std::vector<std::uint32_t> sums(static_cast<std::size_t>(samples));
  std::size_t at = 0;
  if (!box.empty()) {
    for (std::int64_t b = box.begin[0]; b < box.end(0); ++b) {
      for (std::int64_t row = box.begin[1]; row < box.end(1); ++row) {
        for (std::int64_t column = box.begin[2]; column < box.end(2); ++column) {
          const std::uint64_t point =
              mixed((static_cast<std::uint64_t>(row) << 32U) + static_cast<std::uint64_t>(column));
          for (std::int64_t channel = box.begin[3]; channel < box.end(3); ++channel, ++at) {
            if (!counts[static_cast<std::size_t>(channel)]) continue;
            const std::uint64_t place = mixed(point + static_cast<std::uint64_t>(channel) + 1);
            sums[static_cast<std::size_t>(b)] +=
                static_cast<std::uint32_t>(mixed(place ^ known_bits(values[at])) >> 32U);
          }
        }
      }
    }
  }
  // Sums of less than 2²¹ numbers below 2³² are exact in float64.
  std::vector<double> digests =
      world.all_reduce(std::vector<double>(sums.begin(), sums.end()), ReduceOp::kSum);
  for (double& digest : digests) digest = std::fmod(digest, 0x1p32);
  return digests;
}

}  // namespace jigsaw::inline predict
