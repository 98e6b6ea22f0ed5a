#pragma once
#include <cstdint>

#include "kernels/pointwise.h"

namespace jigsaw::inline kernels::cpu {

/// factors[i] = what dropout multiplies element first + i of the position's numbers by, for i < n.
void dropout_factors(const RandomStream& stream, const RandomPosition& position, std::int64_t first,
                     std::int64_t n, double probability, float* factors);

/// The mask of a dropout for ranges of its piece's elements.
class DropoutMask {
 public:
  explicit DropoutMask(const Dropout& dropout);

  /// factors[j] = what dropout multiplies element first + j of the piece by, for j < n.
  void fill(std::int64_t first, std::int64_t n, float* factors) const;

 private:
  const Dropout& dropout_;
  std::int64_t run_ = 1;  ///< consecutive elements of the piece that are consecutive in the global sample
  int run_dim_ = 0;       ///< a run covers the dims from here on
};

}  // namespace jigsaw::inline kernels::cpu
