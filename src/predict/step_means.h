#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace jigsaw::inline predict {

/// Means over steps, of as many numbers as each step has, in double precision and in the order of the steps.
/// A number that is not finite does not count; where none is finite the mean is NaN.
class StepMeans {
 public:
  void add(std::span<const double> values);
  /// The means of what was added since the last call, rounded to float32. Then it is empty.
  std::vector<float> take();

 private:
  std::vector<double> sums_;
  std::vector<std::int32_t> counts_;
};

}  // namespace jigsaw::inline predict
