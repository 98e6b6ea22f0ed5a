#pragma once
#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "array/current_work.h"
#include "kernels/cuda/progress.h"

namespace jigsaw::inline kernels::cuda {

/// Reports a device that failed: which it is, the operation that it was running, and the last whole
/// checkpoint.
class Failures {
 public:
  /// @param described  names the device among all.
  /// @param work       what the rank works on.
  Failures(std::string described, std::shared_ptr<const CurrentWork> work)
      : described_(std::move(described)), work_(std::move(work)), progress_(work_) {}

  const CurrentWork& work() const { return *work_; }
  /// How far the stream for computation has come.
  Progress& progress() { return progress_; }
  /// Whether an error is one of the call that returns it, and not of work before it.
  static bool is_of_the_call(cudaError_t status);
  /// Throws Error unless `status` is good: of calls that may report what work before them has done.
  void check(cudaError_t status) const;
  /// Throws the Error of work that failed. @param launch  "in …, " before the operation.
  [[noreturn]] void tell(cudaError_t status, const std::string& launch, const std::string& operation) const;

 private:
  std::string described_;
  std::shared_ptr<const CurrentWork> work_;
  Progress progress_;
};

}  // namespace jigsaw::inline kernels::cuda
