#pragma once
#include <cstdlib>
#include <optional>
#include <string>

namespace jigsaw::testing {

/// Seeds beyond those of the suite, which is the same each time.
struct GivenSeeds {
  unsigned first;
  unsigned count;
};

/// From JIGSAW_TEST_SEED, and JIGSAW_TEST_SEEDS (40) of them; none where that is not set.
inline std::optional<GivenSeeds> given_seeds() {
  const char* first = std::getenv("JIGSAW_TEST_SEED");
  const char* count = std::getenv("JIGSAW_TEST_SEEDS");
  if (first == nullptr) return std::nullopt;
  const auto number = [](const char* text) { return static_cast<unsigned>(std::stoul(text)); };
  return GivenSeeds{number(first), count == nullptr ? 40 : number(count)};
}

}  // namespace jigsaw::testing
