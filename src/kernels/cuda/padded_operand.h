#pragma once
#include "array/array.h"
#include "kernels/lowering.h"

namespace jigsaw::inline kernels::cuda {

/// A bf16 matrix of a product, copied so that its lines (rows or columns, whichever are contiguous) begin at
/// multiples of 16 bytes: those that do not make cuBLASLt leave its fast kernels.
struct PaddedOperand {
  Array copy;  ///< undefined: the matrix lies as it should
  MatrixProduct::Strides strides;

  /// Of a matrix that is read. `reuse`: operations that each of its elements takes part in; few do not pay
  /// for a copy.
  static PaddedOperand of(Context& context, const std::byte* matrix, std::int64_t batch, std::int64_t rows,
                          std::int64_t columns, const MatrixProduct::Strides& strides, std::int64_t reuse);
  /// Room for one that is written.
  static PaddedOperand room(Context& context, const std::byte* matrix, std::int64_t batch, std::int64_t rows,
                            std::int64_t columns, const MatrixProduct::Strides& strides, std::int64_t reuse);
  /// Copies the room's elements to where they belong.
  void copy_back(Context& context, std::int64_t batch, std::int64_t rows, std::int64_t columns,
                 std::byte* matrix, const MatrixProduct::Strides& to) const;
};

}  // namespace jigsaw::inline kernels::cuda
