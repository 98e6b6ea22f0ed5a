#pragma once
#include <cstdint>
#include <type_traits>

namespace jigsaw::inline kernels::cpu {

/// Vector instructions for which our own loops are compiled.
enum class Instructions : std::uint8_t { kBaseline, kAvx2, kAvx512 };

/// The best of them that the processor has and oneDNN uses, so that ONEDNN_MAX_CPU_ISA limits both.
Instructions best_instructions();

/// `flatten` inlines the whole body, which the compiler then vectorises for the function's own instructions.
template <typename F>
[[gnu::flatten, gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2")]] void run_avx512(
    const F& body) {
  body();
}
template <typename F>
[[gnu::flatten, gnu::target("avx2,fma,bmi2")]] void run_avx2(const F& body) {
  body();
}
template <typename F>
[[gnu::flatten]] void run_baseline(const F& body) {
  body();
}

/// Runs body() compiled for best_instructions(): one binary is fast everywhere.
template <typename F>
void vectorized(const F& body) {
  switch (best_instructions()) {
    case Instructions::kAvx512:
      return run_avx512(body);
    case Instructions::kAvx2:
      return run_avx2(body);
    case Instructions::kBaseline:
      return run_baseline(body);
  }
}

/// The same for a body that is written in vectors: body(lanes), with the number of floats that a vector
/// register holds as an integral constant.
template <typename F>
void vectorized_lanes(const F& body) {
  switch (best_instructions()) {
    case Instructions::kAvx512:
      return run_avx512([&] { body(std::integral_constant<int, 16>{}); });
    case Instructions::kAvx2:
      return run_avx2([&] { body(std::integral_constant<int, 8>{}); });
    case Instructions::kBaseline:
      return run_baseline([&] { body(std::integral_constant<int, 4>{}); });
  }
}

}  // namespace jigsaw::inline kernels::cpu
