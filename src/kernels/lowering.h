#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "array/shape.h"
#include "kernels/contraction.h"

namespace jigsaw::inline kernels {

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
/// arrays by their strides. Of a loop that does not move c, the first step stores and the others add.
struct Lowering {
  struct Loop {
    std::int64_t extent = 1, a = 0, b = 0, c = 0;
  };
  MatrixProduct product;
  std::vector<Loop> loops;
  bool swapped = false;  ///< the product's A and B (and the loops' a and b) are the contraction's b and a

  bool sums() const;  ///< some loop adds to c
};

/// Calls f(offset in a, offset in b, offset in c, whether to add) for each product of the loops.
template <typename F>
void for_each_product(std::span<const Lowering::Loop> loops, bool add, const F& f, std::int64_t a = 0,
                      std::int64_t b = 0, std::int64_t c = 0) {
  if (loops.empty()) return f(a, b, c, add);
  const Lowering::Loop& loop = loops[0];
  for (std::int64_t i = 0; i < loop.extent; ++i) {
    for_each_product(loops.subspan(1), add || (loop.c == 0 && i > 0), f, a + i * loop.a, b + i * loop.b,
                     c + i * loop.c);
  }
}

/// A contraction as products of arrays that are first permuted, or a result that is permuted at the end. An
/// order says which dim of the given array each dim of the permuted one is (see permute); empty: as it is.
struct ContractionPlan {
  std::vector<int> order_a, order_b, order_c;
  Shape permuted_c;  ///< what the products fill when order_c permutes it
  Lowering lowering;
};

/// What a machine does, roughly: what matters is that slivers and many small calls look dear.
struct ContractionRates {
  double flops_per_second, elements_moved_per_second, seconds_per_call;
};
/// Of some cores of a processor, and of a GPU whose products are in bf16 or float32.
inline constexpr ContractionRates kProcessorRates{1e11, 1e9, 5e-6}, kGpuRates{1e14, 5e11, 3e-6};

/// The cheapest plan by a rough model of time. Letters merge into one extent where they are contiguous in all
/// arrays; the largest groups make the product, the others become its batch or loops. All extents are at
/// least 1.
ContractionPlan plan_contraction(const ContractionSpec& spec, const Shape& a, const Shape& b,
                                 const ContractionRates& rates = kProcessorRates);

/// Plans made once.
class ContractionPlans {
 public:
  explicit ContractionPlans(const ContractionRates& rates) : rates_(rates) {}
  const ContractionPlan& of(const ContractionSpec& spec, const Shape& a, const Shape& b);

 private:
  ContractionRates rates_;
  std::map<std::string, ContractionPlan> plans_;
};

}  // namespace jigsaw::inline kernels
