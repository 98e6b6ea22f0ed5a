#pragma once
#include <vector>

#include "array/raw_memory.h"

namespace jigsaw::inline kernels::reference {

/// All elements as float64; none of an undefined array.
inline std::vector<double> widened(const Array& array) {
  std::vector<double> values(array.defined() ? static_cast<std::size_t>(array.count()) : 0);
  visit(array.dtype(), [&](auto zero) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<double>(array.data<decltype(zero)>()[i]);
    }
  });
  return values;
}

/// Stores float64 values as the elements of an array.
inline void store(const std::vector<double>& values, Array& array) {
  visit(array.dtype(), [&](auto zero) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      array.data<decltype(zero)>()[i] = static_cast<decltype(zero)>(values[i]);
    }
  });
}

}  // namespace jigsaw::inline kernels::reference
