#include "kernels/cpu/vectorize.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

namespace jigsaw::cpu {

/// ctest runs all tests of the kernels again with these limits.
TEST(Vectorize, ObeysTheLimitThatIsSetForOneDnn) {
  const char* const variable = std::getenv("ONEDNN_MAX_CPU_ISA");
  const std::string_view limit = variable == nullptr ? "" : variable;
  if (limit == "SSE41") {
    EXPECT_EQ(best_instructions(), Instructions::kBaseline);
  } else if (limit == "AVX2") {
    EXPECT_LE(best_instructions(), Instructions::kAvx2);
  } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    EXPECT_GE(best_instructions(), Instructions::kAvx2);
  }
}

TEST(Vectorize, LanesFillTheRegistersOfTheInstructions) {
  vectorized_lanes([](auto lanes) { EXPECT_EQ(lanes.value, 4 << static_cast<int>(best_instructions())); });
}

}  // namespace jigsaw::cpu
