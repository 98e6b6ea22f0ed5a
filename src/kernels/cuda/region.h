#pragma once
#include <cstddef>
#include <cstdint>

#include "array/context.h"
#include "kernels/box_table.h"

namespace jigsaw::inline kernels::cuda {

/// A strided copy from one array to another, as a BoxTable of one cell with one term, except that here the
/// innermost dim need not be consecutive in either array.
struct Region {
  BoxCell cell{.count = 1};
  BoxTerm term;

  /// One more dim, within those that are there, and its strides, in elements.
  void add_dim(std::int64_t extent, std::int64_t read, std::int64_t write);
};

/// Copies elements of `size` bytes (2, 4 or 8), in words of up to 16 bytes.
void move_region(const Context& context, const Region& region, std::int64_t size, const std::byte* source,
                 std::byte* target);

}  // namespace jigsaw::inline kernels::cuda
