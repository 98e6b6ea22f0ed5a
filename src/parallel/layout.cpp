#include "parallel/layout.h"

#include <algorithm>

#include "base/text.h"

namespace jigsaw::inline parallel {

int MeshShape::ranks() const {
  int product = 1;
  for (int axis = 0; axis < axes; ++axis) product *= size[static_cast<std::size_t>(axis)];
  return product;
}

Coordinates MeshShape::coordinates(int rank) const {
  Coordinates at{};
  for (int axis = axes - 1; axis >= 0; --axis) {
    const auto a = static_cast<std::size_t>(axis);
    at[a] = rank % size[a];
    rank /= size[a];
  }
  return at;
}

std::string Placement::to_string() const {
  switch (kind) {
    case Kind::kReplicate:
      return "R";
    case Kind::kShard:
      return unit == 1 ? concat("S(", int{dim}, ")") : concat("S(", int{dim}, "/", unit, ")");
    case Kind::kPartialSum:
      return "P(sum)";
  }
  return "?";
}

AxisSet Placements::partial_axes() const {
  AxisSet axes = 0;
  for (int axis = 0; axis < kMaxAxes; ++axis) {
    if ((*this)[axis].is_partial()) axes |= axis_bit(axis);
  }
  return axes;
}

Placements dual(const Placements& placements) {
  Placements result = placements;
  for (Placement& placement : result.of) {
    if (placement.is_partial()) placement = Placement::replicate();
  }
  return result;
}

Range cut_range(std::int64_t extent, int count, int index) {
  const std::int64_t base = extent / count, longer = extent % count;
  const std::int64_t begin = index * base + std::min<std::int64_t>(index, longer);
  return {begin, begin + base + (index < longer ? 1 : 0)};
}

Box Layout::box(const MeshShape& mesh, const Coordinates& at) const {
  std::array<std::int64_t, Shape::kMaxRank> unit{}, first{}, units{};
  for (int axis = 0; axis < mesh.axes; ++axis) {
    const Placement& placement = placements[axis];
    if (!placement.is_shard()) continue;
    const auto a = static_cast<std::size_t>(axis), dim = static_cast<std::size_t>(placement.dim);
    if (unit[dim] == 0) {
      unit[dim] = placement.unit;
      units[dim] = (global[placement.dim] + unit[dim] - 1) / unit[dim];
    }
    if (mesh.size[a] == 1) continue;
    const Range range = cut_range(units[dim], mesh.size[a], at[a]);
    first[dim] += range.begin;
    units[dim] = range.size();
  }
  Box box = Box::whole(global);
  for (int dim = 0; dim < global.rank(); ++dim) {
    const auto d = static_cast<std::size_t>(dim);
    if (unit[d] == 0) continue;
    box.begin[dim] = std::min(first[d] * unit[d], global[dim]);
    box.extent[dim] = std::min((first[d] + units[d]) * unit[d], global[dim]) - box.begin[dim];
  }
  return box;
}

Shape Layout::largest_piece(const MeshShape& mesh) const {
  std::array<std::int64_t, Shape::kMaxRank> unit{}, units{};
  for (int axis = 0; axis < mesh.axes; ++axis) {
    const Placement& placement = placements[axis];
    if (!placement.is_shard()) continue;
    const auto dim = static_cast<std::size_t>(placement.dim);
    if (unit[dim] == 0) {
      unit[dim] = placement.unit;
      units[dim] = (global[placement.dim] + placement.unit - 1) / placement.unit;
    }
    const int size = mesh.size[static_cast<std::size_t>(axis)];
    units[dim] = (units[dim] + size - 1) / size;
  }
  Shape piece = global;
  for (int dim = 0; dim < global.rank(); ++dim) {
    const auto d = static_cast<std::size_t>(dim);
    if (unit[d] != 0) piece[dim] = std::min(units[d] * unit[d], global[dim]);
  }
  return piece;
}

std::vector<int> Layout::cutting(const MeshShape& mesh, int dim) const {
  std::vector<int> axes;
  for (int axis = 0; axis < mesh.axes; ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    if (mesh.size[a] > 1 && placements[axis].is_shard() && placements[axis].dim == dim) axes.push_back(axis);
  }
  return axes;
}

std::string Layout::to_string(const MeshShape& mesh) const {
  std::vector<std::string> parts;
  for (int axis = 0; axis < mesh.axes; ++axis) parts.push_back(placements[axis].to_string());
  return concat(global, "{", join(parts, " "), "}");
}

}  // namespace jigsaw::inline parallel
