#include "kernels/cpu/vectorize.h"

#include <cstdlib>
#include <string_view>

namespace jigsaw::cpu {

namespace {

Instructions choose() {
  const char* const variable = std::getenv("ONEDNN_MAX_CPU_ISA");
  const std::string_view most = variable == nullptr ? "" : variable;
  if (most == "SSE41" || most == "AVX") return Instructions::kBaseline;
  if (!most.starts_with("AVX2") && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return Instructions::kAvx512;
  }
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? Instructions::kAvx2
                                                                         : Instructions::kBaseline;
}

}  // namespace

Instructions best_instructions() {
  static const Instructions best = choose();
  return best;
}

}  // namespace jigsaw::cpu
