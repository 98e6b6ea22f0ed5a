#include "kernels/cuda/progress.h"

#include <cuda.h>

#include "kernels/cuda/driver.h"

namespace jigsaw::inline kernels::cuda {

namespace {

/// Of numbers that begin again behind the last one.
bool is_before(std::uint32_t number, std::uint32_t other) {
  return static_cast<std::int32_t>(number - other) < 0;
}

}  // namespace

Progress::Progress(std::shared_ptr<const CurrentWork> work) : work_(std::move(work)) {
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, sizeof(std::uint32_t), cudaHostAllocMapped), "take pinned memory");
  reached_ = static_cast<std::uint32_t*>(memory);
  *reached_ = 0;
}

Progress::~Progress() {
  cudaFreeHost(reached_);
}

std::uint32_t Progress::reached() const {
  return *const_cast<const volatile std::uint32_t*>(reached_);
}

void Progress::mark(cudaStream_t stream) {
  static const auto write = find_driver_function<decltype(cuStreamWriteValue32)>("cuStreamWriteValue32");
  if (changes_ == work_->changes || !marks_) return;
  changes_ = work_->changes;
  marks_ = write != nullptr && write(stream, reinterpret_cast<CUdeviceptr>(reached_), ++last_,
                                     CU_STREAM_WRITE_VALUE_DEFAULT) == CUDA_SUCCESS;
  if (!marks_) return to_come_.clear();
  to_come_.emplace_back(last_, work_->text());
  while (is_before(to_come_.front().first, reached())) to_come_.pop_front();
}

std::string Progress::text() const {
  std::string text = work_->text();
  for (const auto& [number, begun] : to_come_) {
    text = begun;
    if (!is_before(number, reached())) break;
  }
  return text;
}

}  // namespace jigsaw::inline kernels::cuda
