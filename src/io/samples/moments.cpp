#include "samples/moments.h"

#include <algorithm>
#include <cmath>

namespace jigsaw::inline samples {

RunningMoments RunningMoments::of(std::span<const double> values) {
  RunningMoments moments;
  double sum = 0;
  for (const double value : values) {
    if (std::isnan(value)) continue;
    sum += value;
    moments.count += 1;
    moments.least = std::min(moments.least, value);
    moments.largest = std::max(moments.largest, value);
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
  least = std::min(least, other.least);
  largest = std::max(largest, other.largest);
}

double RunningMoments::mean_of_any() const {
  return count > 0 ? mean : std::numeric_limits<double>::quiet_NaN();
}

double RunningMoments::deviation() const {
  return count > 0 ? std::sqrt(squares / count) : 0;
}

}  // namespace jigsaw::inline samples
