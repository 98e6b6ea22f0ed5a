#include "samples/transformed_values.h"

#include <algorithm>

namespace jigsaw::inline samples {

void ValuesBelow::merge(const ValuesBelow& other) {
  count += other.count;
  lowest = std::min(lowest, other.lowest);
}

ValuesBelow transform_values(const Transform& transform, std::span<double> values) {
  ValuesBelow below;
  if (transform.linear()) return below;
  for (double& x : values) {
    if (x < 0) below.count += 1;
    if (x < below.lowest) below.lowest = x;
    x = transform.forward(x);
  }
  return below;
}

}  // namespace jigsaw::inline samples
