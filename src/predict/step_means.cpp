#include "predict/step_means.h"

#include <cmath>
#include <limits>

namespace jigsaw::inline predict {

void StepMeans::add(std::span<const double> values) {
  sums_.resize(values.size());
  counts_.resize(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    sums_[i] += values[i];
    ++counts_[i];
  }
}

std::vector<float> StepMeans::take() {
  std::vector<float> means(sums_.size(), std::numeric_limits<float>::quiet_NaN());
  for (std::size_t i = 0; i < means.size(); ++i)
    if (counts_[i] > 0) means[i] = static_cast<float>(sums_[i] / counts_[i]);
  sums_.clear();
  counts_.clear();
  return means;
}

}  // namespace jigsaw::inline predict
