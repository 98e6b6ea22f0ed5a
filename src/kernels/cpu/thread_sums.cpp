#include "kernels/cpu/thread_sums.h"

#include <algorithm>

namespace jigsaw::cpu {

/// Rows start on cache lines of their own, so that threads do not share one.
ThreadSums::ThreadSums(Context& context, int threads, std::int64_t columns)
    : threads_(threads),
      stride_((columns + 31) / 16 * 16),
      rows_(Array::zeros(context, {threads, stride_}, DType::kFloat32, Purpose::kWorkspace)) {}

void ThreadSums::total(std::int64_t first, std::int64_t n, float* total) {
  std::copy_n(of(0) + first, n, total);
  for (int thread = 1; thread < threads_; ++thread) {
    const float* const more = of(thread) + first;
    for (std::int64_t i = 0; i < n; ++i) total[i] += more[i];
  }
}

}  // namespace jigsaw::cpu
