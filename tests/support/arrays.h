#pragma once
#include <algorithm>
#include <random>
#include <vector>

#include "support/test_device.h"

namespace jigsaw::testing {

/// An array with these elements, rounded to its type.
inline Array array_of(const Context& context, const Shape& shape, DType dtype,
                      const std::vector<double>& values) {
  return constant(context, shape, dtype, values, Purpose::kActivations);
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
  if (values.empty()) return values;
  const Array host = on_host(array);
  visit(array.dtype(), [&](auto zero) {
    std::ranges::transform(HostView<decltype(zero)>(host), values.begin(),
                           [](auto x) { return static_cast<double>(x); });
  });
  return values;
}

}  // namespace jigsaw::testing
