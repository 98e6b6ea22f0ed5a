#include "kernels/cpu/vectorize.h"

#include <dnnl.hpp>

namespace jigsaw::inline kernels::cpu {

namespace {

/// Whether oneDNN uses this set of instructions, on this processor and within its user's limit.
bool onednn_uses(dnnl::cpu_isa set) {
  const auto bits = static_cast<unsigned>(set);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & bits) == bits;
}

Instructions choose() {
  if (onednn_uses(dnnl::cpu_isa::avx512_core) && __builtin_cpu_supports("avx512f") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    return Instructions::kAvx512;
  }
  if (onednn_uses(dnnl::cpu_isa::avx2) && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return Instructions::kAvx2;
  }
  return Instructions::kBaseline;
}

}  // namespace

Instructions best_instructions() {
  static const Instructions best = choose();
  return best;
}

}  // namespace jigsaw::inline kernels::cpu
