#include "kernels/flush_to_zero.h"

#include <pmmintrin.h>

#include "array/parallel.h"

namespace jigsaw::inline kernels {

void set_flush_to_zero(int threads) {
  run_on_threads(threads, [](int) {
    _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
    _MM_SET_DENORMALS_ZERO_MODE(_MM_DENORMALS_ZERO_ON);
  });
}

}  // namespace jigsaw::inline kernels
