#pragma once
#include <cuda_runtime_api.h>

#include <memory>
#include <span>
#include <vector>

#include "array/context.h"

namespace jigsaw::inline kernels::cuda {

/// The end of a context: the work in its streams is waited for, not for ever, since the device may hang, or
/// wait for ranks that are gone.
class Ending {
 public:
  explicit Ending(std::span<const cudaStream_t> streams) : streams_(streams.begin(), streams.end()) {}

  /// Whether all of it comes to its end, good or bad. Where it does not, what the context has is left as it
  /// is: that work may use it, and CUDA and its libraries wait for the device before they destroy or free.
  bool comes();

 private:
  std::vector<cudaStream_t> streams_;
  bool hangs_ = false;
};
std::shared_ptr<Ending> ending_of(const Context& context);

/// Deletes what a context has, unless that is to be left.
struct AtTheEnd {
  std::shared_ptr<Ending> ending;

  template <typename T>
  void operator()(const T* held) const {
    if (ending->comes()) delete held;
  }
};

}  // namespace jigsaw::inline kernels::cuda
