#pragma once
#include <cstdint>

#include "array/raw_memory.h"

namespace jigsaw::cpu {

/// One row of sums a thread, zero at first, added up in the order of the threads: results repeat bit for bit.
class ThreadSums {
 public:
  ThreadSums(Context& context, int threads, std::int64_t columns);

  float* of(int thread) { return rows_.data<float>() + thread * stride_; }
  /// total[column] = Σ over threads, for `n` columns from `first` on.
  void total(std::int64_t first, std::int64_t n, float* total);

 private:
  int threads_;
  std::int64_t stride_;
  Array rows_;
};

}  // namespace jigsaw::cpu
