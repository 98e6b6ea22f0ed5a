#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>

#include "array/context.h"

namespace jigsaw::inline array {

/// Calls task(thread) for thread = 0 … threads − 1, at once where the build has OpenMP, else one after the
/// other.
void run_on_threads(int threads, const std::function<void(int)>& task);

/// Libraries called in the scope use so many OpenMP threads.
class LibraryThreads {
 public:
  explicit LibraryThreads(int threads);
  ~LibraryThreads();
  LibraryThreads(const LibraryThreads&) = delete;
  LibraryThreads& operator=(const LibraryThreads&) = delete;

 private:
  int before_;
};

/// Threads worth starting for `count` items, each about `work` elements: one when all are few.
inline int threads_for(const Context& context, std::int64_t count, std::int64_t work) {
  constexpr std::int64_t kFew = 1 << 14;
  if (count * work < kFew) return 1;
  return static_cast<int>(std::min<std::int64_t>(context.threads(), count));
}

/// Cuts [0, count) into one range a thread, cut at multiples of `step`, and calls f(begin, end, thread). The
/// cut depends on the arguments only, so results that depend on it repeat.
template <typename F>
void for_ranges(int threads, std::int64_t count, std::int64_t step, const F& f) {
  const std::int64_t steps = (count + step - 1) / step;
  run_on_threads(threads, [&](int thread) {
    const std::int64_t begin = steps * thread / threads * step;
    const std::int64_t end = std::min(count, steps * (thread + 1) / threads * step);
    if (begin < end) f(begin, end, thread);
  });
}

}  // namespace jigsaw::inline array
