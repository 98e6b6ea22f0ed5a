#pragma once
#include <algorithm>
#include <random>
#include <vector>

#include "array/array.h"

namespace jigsaw::testing {

/// An array with these elements, rounded to its type.
inline Array array_of(const Context& context, const Shape& shape, DType dtype,
                      const std::vector<double>& values) {
  Array array(context, shape, dtype);
  visit(dtype, [&](auto zero) {
    std::ranges::transform(values, array.data<decltype(zero)>(),
                           [](double value) { return static_cast<decltype(zero)>(value); });
  });
  return array;
}

/// An array of numbers uniform in [low, high), repeatable.
inline Array random_array(const Context& context, const Shape& shape, DType dtype, unsigned seed,
                          double low = -1, double high = 1) {
  std::mt19937 generator(seed);
  std::vector<double> values(static_cast<std::size_t>(shape.count()));
  for (double& value : values) value = low + (high - low) * (generator() * 0x1p-32);
  return array_of(context, shape, dtype, values);
}

/// All elements as float64; none of an undefined array.
inline std::vector<double> values_of(const Array& array) {
  std::vector<double> values(array.defined() ? static_cast<std::size_t>(array.count()) : 0);
  visit(array.dtype(), [&](auto zero) {
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<double>(array.data<decltype(zero)>()[i]);
  });
  return values;
}

}  // namespace jigsaw::testing
