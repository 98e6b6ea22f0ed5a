#pragma once
#include <functional>
#include <string>

#include "parallel/sharded_tensor.h"

namespace jigsaw::inline autograd {

/// Sees what the operations of a rank give, in the order in which they run, which is the same on every mesh.
/// Lies in the state of the rank's context (Context::state); while nobody watches it costs a look-up per
/// operation.
struct OutputWatch {
  enum class Phase : std::uint8_t {
    kForward,   ///< what an operation gives
    kGradient,  ///< the gradient of that, when backward has reached the operation: whole
  };
  struct Source {
    std::string block;          ///< its path
    std::size_t operation = 0;  ///< number in the block
    std::string name;           ///< see Signature
    Phase phase = Phase::kForward;
  };
  std::function<void(const Source&, const ShardedTensor&)> saw;
  std::string block;  ///< that runs; the tape sets it
};

}  // namespace jigsaw::inline autograd
