#pragma once
#include <algorithm>
#include <vector>

namespace jigsaw::inline fields {

/// Ascending, each value once.
template <typename T>
void sort_unique(std::vector<T>& values) {
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

}  // namespace jigsaw::inline fields
