#include "kernels/flush_to_zero.h"

#include <cstdint>

#ifdef __x86_64__
#include <pmmintrin.h>
#endif

#include "array/parallel.h"

namespace jigsaw::inline kernels {

namespace {

void set_on_this_thread() {
#if defined(__x86_64__)
  _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
  _MM_SET_DENORMALS_ZERO_MODE(_MM_DENORMALS_ZERO_ON);
#elif defined(__aarch64__)
  constexpr std::uint64_t kFlushes = std::uint64_t{1} << 24;  // FPCR.FZ
  std::uint64_t mode = 0;
  asm volatile("mrs %0, fpcr" : "=r"(mode));
  asm volatile("msr fpcr, %0" : : "r"(mode | kFlushes));
#endif
}

}  // namespace

void set_flush_to_zero(int threads) {
  run_on_threads(threads, [](int) { set_on_this_thread(); });
}

}  // namespace jigsaw::inline kernels
