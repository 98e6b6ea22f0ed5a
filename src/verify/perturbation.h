#pragma once
#include <cstdint>

#include "array/array.h"

namespace jigsaw::inline verify {

/// Moves every element of the arrays it is given up or down by one rounding, from the third on by four, at
/// random: sums of what it does grow as those of roundings do. Larger ones reach more of what rounding
/// decides; four times what four roundings do is the sixteen times that one allows anyway
/// (Tolerances::kMostFactor, kNoiseFactor). 1 and 2 are opposite, as are 3 and 4, and so on: of two values
/// that are equal but for rounding one of a pair makes the first the larger, the other the second.
class Perturbation {
 public:
  /// @param number  from 1 on.
  explicit Perturbation(int number) : number_(number) {}

  int roundings() const { return number_ <= 2 ? 1 : 4; }
  /// @param rounding  relative.
  /// @param place     tells pieces of ranks apart; the same for copies.
  void move(const Context& context, const Array& array, double rounding, std::uint64_t place);

 private:
  int number_;
  std::uint64_t arrays_ = 0;  ///< that were moved
};

}  // namespace jigsaw::inline verify
