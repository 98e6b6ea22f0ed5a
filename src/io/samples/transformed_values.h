#pragma once
#include <span>
#include <vector>

#include "fields/transform.h"

namespace jigsaw::inline samples {

/// Values that a transform does not tell from 0: how many, and the least of them in the unit of the files.
struct ValuesBelow {
  double count = 0, lowest = 0;

  void merge(const ValuesBelow& other);
};

/// Puts what a transform makes of values in their place; NaN stays.
ValuesBelow transform_values(const Transform& transform, std::span<double> values);

struct TransformedValues {
  std::vector<double> values;
  ValuesBelow below;
};

}  // namespace jigsaw::inline samples
