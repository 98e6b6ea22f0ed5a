#include <omp.h>

#include "array/parallel.h"

namespace jigsaw::inline array {

void run_on_threads(int threads, const std::function<void(int)>& task) {
  if (threads == 1) return task(0);
#pragma omp parallel for schedule(static, 1) num_threads(threads)
  for (int thread = 0; thread < threads; ++thread) task(thread);
}

LibraryThreads::LibraryThreads(int threads) : before_(omp_get_max_threads()) {
  omp_set_num_threads(threads);
}
LibraryThreads::~LibraryThreads() {
  omp_set_num_threads(before_);
}

}  // namespace jigsaw::inline array
