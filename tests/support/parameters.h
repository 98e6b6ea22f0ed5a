#pragma once
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "autograd/parameter.h"
#include "support/arrays.h"
#include "support/pieces.h"

namespace jigsaw::testing {

/// Whole tensors, row-major, by name.
using Tensors = std::map<std::string, std::vector<double>>;

/// Calls f(whole tensor, index in it, index in the range) for every element of the segments.
template <typename F>
void for_each_element(const std::vector<Segment>& segments, Tensors& tensors, F&& f) {
  for (const Segment& segment : segments) {
    std::vector<double>& whole = tensors[segment.parameter->name()];
    const Shape& shape = segment.parameter->shape();
    whole.resize(static_cast<std::size_t>(shape.count()), NAN);
    for (std::int64_t i = 0; i < segment.count; ++i) {
      f(whole[static_cast<std::size_t>(global_index(shape, segment.box, segment.first + i))], segment.at + i);
    }
  }
}

/// Adds this rank's elements of a flat array to whole tensors; what no rank holds is NaN.
inline void collect(const std::vector<Segment>& segments, const Array& flat, Tensors& into) {
  const std::vector<double> values = values_of(flat);
  for_each_element(segments, into,
                   [&](double& element, std::int64_t at) { element = values[static_cast<std::size_t>(at)]; });
}

/// Parameters of a block take these values; tensors that are missing make them NaN.
inline void load(const Context& context, ParameterBlock& block, Tensors tensors) {
  for (auto& group : block.groups()) {
    std::vector<double> values = values_of(group->stored());
    for_each_element(group->stored_segments(), tensors, [&](double& element, std::int64_t at) {
      values[static_cast<std::size_t>(at)] = element;
    });
    write_values(context, group->stored(), values);
  }
}

/// Puts together what each rank holds.
inline void merge(Tensors& into, const Tensors& from) {
  for (const auto& [name, values] : from) {
    std::vector<double>& whole = into[name];
    whole.resize(values.size(), NAN);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!std::isnan(values[i])) whole[i] = values[i];
    }
  }
}

/// Largest difference over the largest expected value (or `floor`, if that is larger); NaN when an element of
/// either is, infinite when sizes differ.
inline double relative_difference(const std::vector<double>& actual, const std::vector<double>& expected,
                                  double floor = 1e-300) {
  if (actual.size() != expected.size()) return INFINITY;
  double largest = floor, difference = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (std::isnan(actual[i]) || std::isnan(expected[i])) return NAN;
    largest = std::max(largest, std::abs(expected[i]));
    difference = std::max(difference, std::abs(actual[i] - expected[i]));
  }
  return difference / largest;
}

}  // namespace jigsaw::testing
