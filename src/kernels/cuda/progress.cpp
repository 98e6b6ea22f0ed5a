#include "kernels/cuda/progress.h"

namespace jigsaw::inline kernels::cuda {

namespace {

/// Order of counters that wrap around.
bool is_before(std::uint32_t number, std::uint32_t other) {
  return static_cast<std::int32_t>(number - other) < 0;
}

}  // namespace

void Progress::mark(cudaStream_t stream) {
  if (changes_ == work_->changes || !marks_) return;
  changes_ = work_->changes;
  if (!counter_.count(stream)) {
    marks_ = counter_.can_count();
    if (!marks_) to_come_.clear();
    return;
  }
  to_come_.emplace_back(counter_.last(), work_->text());
  while (is_before(to_come_.front().first, counter_.reached())) to_come_.pop_front();
}

std::string Progress::text() const {
  std::string text = work_->text();
  for (const auto& [number, begun] : to_come_) {
    text = begun;
    if (!is_before(number, counter_.reached())) break;
  }
  return text;
}

}  // namespace jigsaw::inline kernels::cuda
