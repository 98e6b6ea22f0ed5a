#include "samples/moments.h"

#include <cmath>
#include <limits>

namespace jigsaw::inline samples {

RunningMoments RunningMoments::of(std::span<const double> values) {
  RunningMoments moments;
  double sum = 0;
  for (const double value : values) {
    if (std::isnan(value)) continue;
    sum += value;
    moments.count += 1;
  }
  if (moments.count == 0) return moments;
  moments.mean = sum / moments.count;
  for (const double value : values) {
    if (std::isnan(value)) continue;
    moments.squares += (value - moments.mean) * (value - moments.mean);
  }
  return moments;
}

void RunningMoments::merge(const RunningMoments& other) {
  if (other.count == 0) return;
  const double total = count + other.count, shift = other.mean - mean;
  mean += shift * (other.count / total);
  squares += other.squares + shift * shift * (count * other.count / total);
  count = total;
}

double RunningMoments::mean_of_any() const {
  return count > 0 ? mean : std::numeric_limits<double>::quiet_NaN();
}

double RunningMoments::deviation() const {
  return count > 0 ? std::sqrt(squares / count) : 0;
}

}  // namespace jigsaw::inline samples
