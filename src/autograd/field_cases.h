#pragma once
#include "autograd/field_operations.h"
#include "autograd/registry.h"

namespace jigsaw::inline autograd {

// What the cases of operations on fields share.

/// Fields of 2 spatial dims whose dims are cut evenly and unevenly, one with less rows than ranks.
inline std::vector<Shape> proof_fields() {
  return {{3, 5, 4, 2}, {2, 4, 5, 3}, {4, 2, 7, 5}};
}
inline std::vector<Shape> proof_volumes() {
  return {{2, 4, 3, 5, 3}, {3, 5, 4, 2, 2}};
}
/// Each as the only input.
inline std::vector<std::vector<Shape>> alone(const std::vector<Shape>& fields) {
  std::vector<std::vector<Shape>> inputs;
  for (const Shape& field : fields) inputs.push_back({field});
  return inputs;
}

inline Padding all_around(int dims, std::int64_t points, Edge edge = Edge::kZero) {
  return {std::vector<Ends>(static_cast<std::size_t>(dims), {points, points, edge, edge})};
}

inline Window square_window(const Shape& extent, std::int64_t stride = 1) {
  return {extent, Shape::filled(extent.rank(), stride), Shape::filled(extent.rank(), 1)};
}

}  // namespace jigsaw::inline autograd
