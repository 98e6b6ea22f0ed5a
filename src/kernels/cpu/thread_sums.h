#pragma once
#include <cstdint>
#include <vector>

#include "array/raw_memory.h"

namespace jigsaw::inline kernels::cpu {

/// One row of sums a thread, zero at first, added up in the order of the threads: results repeat bit for bit.
/// A thread adds in float32, to what its last kRows rows gave, so that vectors stay wide; these go on into
/// float64, so that a sum over 2^24 rows is as exact as one over a few.
class ThreadSums {
 public:
  static constexpr std::int64_t kRows = 64;

  ThreadSums(Context& context, int threads, std::int64_t columns);

  /// Where the thread adds its rows.
  float* of(int thread) { return rows_.data<float>() + thread * stride_; }
  /// To be called by the thread after each row that it added.
  void added(int thread) {
    if (++counts_[static_cast<std::size_t>(thread) * kApart] % kRows == 0) flush(thread);
  }
  /// What the thread has added in float32 goes into float64.
  void flush(int thread);
  /// total[column] = Σ over threads, for `n` columns from `first` on.
  void total(std::int64_t first, std::int64_t n, float* total);

 private:
  static constexpr std::size_t kApart = 8;  // threads do not share a cache line
  double* wide(int thread) { return wide_.data<double>() + thread * stride_; }
  int threads_;
  std::int64_t stride_;
  Array rows_, wide_;
  std::vector<std::int64_t> counts_;
};

}  // namespace jigsaw::inline kernels::cpu
