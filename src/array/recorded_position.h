#pragma once
#include <cstdint>

#include "array/array.h"

namespace jigsaw::inline array {

/// Which step recorded work belongs to when it runs again. Lies in the state of the rank's context.
struct RecordedPosition {
  /// While work is recorded: f64 [1], how many steps later than it was recorded the work runs. Kernels that
  /// draw random numbers add it to the step of their position.
  Array steps_later;
  /// Grows when what was recorded is forgotten: what work of this era reads stays where it is.
  std::int64_t era = 1;
};

}  // namespace jigsaw::inline array
