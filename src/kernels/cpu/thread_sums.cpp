#include "kernels/cpu/thread_sums.h"

#include <algorithm>

#include "kernels/cpu/vectorize.h"

namespace jigsaw::inline kernels::cpu {

/// Rows start on cache lines of their own, so that threads do not share one.
ThreadSums::ThreadSums(Context& context, int threads, std::int64_t columns)
    : threads_(threads),
      stride_((columns + 31) / 16 * 16),
      rows_(Array::zeros(context, {threads, stride_}, DType::kFloat32, Purpose::kWorkspace)),
      wide_(Array::zeros(context, {threads, stride_}, DType::kFloat64, Purpose::kWorkspace)),
      counts_(static_cast<std::size_t>(threads) * kApart, 0) {}

void ThreadSums::flush(int thread) {
  float* const sums = of(thread);
  double* const totals = wide(thread);
  vectorized([=, n = stride_] {
    for (std::int64_t i = 0; i < n; ++i) totals[i] += static_cast<double>(sums[i]);
    for (std::int64_t i = 0; i < n; ++i) sums[i] = 0.0F;
  });
}

void ThreadSums::total(std::int64_t first, std::int64_t n, float* total) {
  std::vector<double> sums(static_cast<std::size_t>(n), 0.0);
  for (int thread = 0; thread < threads_; ++thread) {
    const float* const rows = of(thread) + first;
    const double* const before = wide(thread) + first;
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += before[i] + static_cast<double>(rows[i]);
  }
  std::ranges::transform(sums, total, [](double sum) { return static_cast<float>(sum); });
}

}  // namespace jigsaw::inline kernels::cpu
