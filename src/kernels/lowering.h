#pragma once
#include <cstdint>
#include <vector>

#include "array/shape.h"
#include "kernels/contraction.h"

namespace jigsaw {

/// Products described to a matrix library: for each of `batch` indices C[m, n] (+)= Σ_k A[m, k] · B[k, n]
/// with element strides {batch, row, column}. A batch stride of zero in A or B repeats the operand. In each
/// matrix the row or the column stride is one; in C it is the column's.
struct MatrixProduct {
  struct Strides {
    std::int64_t batch = 0, row = 0, column = 0;
    auto operator<=>(const Strides&) const = default;
  };
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
  Strides a, b, c;
  auto operator<=>(const MatrixProduct&) const = default;
};

/// A contraction as matrix products: `product` for every combination of the loops' indices, which move the
/// arrays by their strides. Loops that do not move c add to it; they run innermost.
struct Lowering {
  struct Loop {
    std::int64_t extent = 1, a = 0, b = 0, c = 0;
  };
  MatrixProduct product;
  std::vector<Loop> loops;
  bool swapped = false;  ///< the product's A and B (and the loops' a and b) are the contraction's b and a

  bool sums() const;  ///< some loop adds to c
};

/// A contraction as products of arrays that are first permuted, or a result that is permuted at the end. An
/// order says which dim of the given array each dim of the permuted one is (see permute); empty: as it is.
struct ContractionPlan {
  std::vector<int> order_a, order_b, order_c;
  Shape permuted_c;  ///< what the products fill when order_c permutes it
  Lowering lowering;
};

/// The cheapest plan by a rough model of time. Letters merge into one extent where they are contiguous in all
/// arrays; the largest groups make the product, the others become its batch or loops. All extents are at
/// least 1.
ContractionPlan plan_contraction(const ContractionSpec& spec, const Shape& a, const Shape& b);

}  // namespace jigsaw
