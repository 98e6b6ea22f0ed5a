#pragma once
#include <cstdint>

namespace jigsaw::inline verify {

/// Random bits of a number (SplitMix64).
inline std::uint64_t random_bits(std::uint64_t number) {
  std::uint64_t z = number + 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

}  // namespace jigsaw::inline verify
