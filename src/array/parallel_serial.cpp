#include "array/parallel.h"

namespace jigsaw::inline array {

void run_on_threads(int threads, const std::function<void(int)>& task) {
  for (int thread = 0; thread < threads; ++thread) task(thread);
}

LibraryThreads::LibraryThreads(int threads) : before_(threads) {}
LibraryThreads::~LibraryThreads() = default;

}  // namespace jigsaw::inline array
