#pragma once
#include <cstdint>
#include <string_view>

#include "array/shape.h"

namespace jigsaw::inline kernels {

/// How a window (a convolution's kernel, a pooling's window) moves over a grid; one entry per spatial dim,
/// each at least 1.
struct Window {
  Shape extent;    ///< points
  Shape stride;    ///< grid points between neighbouring places of the window
  Shape dilation;  ///< grid points between neighbouring points of the window

  /// Grid points that the window covers along a spatial dim, from its first to its last.
  std::int64_t reach(int dim) const { return dilation[dim] * (extent[dim] - 1) + 1; }
  /// Number of places along each dim at which it lies inside the grid: ⌊(space − reach)/stride⌋ + 1, or none.
  Shape places(const Shape& space) const;
  /// Throws ShapeError that names the kernel unless there are `rank` entries (1 to 3), all at least 1.
  void require_rank(std::string_view kernel, int rank) const;
};

}  // namespace jigsaw::inline kernels
