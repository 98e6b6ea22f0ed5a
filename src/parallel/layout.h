#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "array/box.h"
#include "array/shape.h"

namespace jigsaw::inline parallel {

/// Mesh axes have small numbers; a set of them is a bit mask.
inline constexpr int kMaxAxes = 6;
using AxisSet = std::uint32_t;
constexpr AxisSet axis_bit(int axis) {
  return AxisSet{1} << axis;
}
constexpr bool contains(AxisSet set, int axis) {
  return (set >> axis & 1U) != 0;
}

/// Extents of the mesh axes, and a rank's place in them.
struct MeshShape {
  int axes = 0;
  std::array<int, kMaxAxes> size{};

  int ranks() const;
  /// Coordinates of a rank; the last axis varies fastest.
  std::array<int, kMaxAxes> coordinates(int rank) const;
  bool operator==(const MeshShape&) const = default;
};
using Coordinates = std::array<int, kMaxAxes>;

/// What one mesh axis does to a tensor.
struct Placement {
  enum class Kind : std::uint8_t { kReplicate, kShard, kPartialSum };
  Kind kind = Kind::kReplicate;
  std::int8_t dim = 0;    ///< kShard: the dim that is cut
  std::int32_t unit = 1;  ///< kShard: only multiples of this many elements are cut apart (a patch, a head)

  static Placement replicate() { return {}; }
  static Placement shard(int dim, std::int64_t unit = 1) {
    return {Kind::kShard, static_cast<std::int8_t>(dim), static_cast<std::int32_t>(unit)};
  }
  static Placement partial_sum() { return {Kind::kPartialSum}; }

  bool is_shard() const { return kind == Kind::kShard; }
  bool is_replicate() const { return kind == Kind::kReplicate; }
  bool is_partial() const { return kind == Kind::kPartialSum; }
  bool operator==(const Placement&) const = default;
  std::string to_string() const;
};

/// One placement per mesh axis.
struct Placements {
  std::array<Placement, kMaxAxes> of{};

  Placement& operator[](int axis) { return of[static_cast<std::size_t>(axis)]; }
  const Placement& operator[](int axis) const { return of[static_cast<std::size_t>(axis)]; }
  AxisSet partial_axes() const;
  bool any_partial() const { return partial_axes() != 0; }
  bool operator==(const Placements&) const = default;
};

/// How a gradient of a value is placed: as the value, but whole where the value is Partial.
Placements dual(const Placements& placements);

/// How a global tensor is cut: its shape, and what each mesh axis does to it. Where several axes cut one dim,
/// the axis of lower number cuts first. Extents are cut first-remainder: 721 on 4 ranks are [181, 180, 180,
/// 180]; pieces may be empty.
struct Layout {
  Shape global;
  Placements placements;

  /// The piece held at these coordinates. Partial axes hold a summand of the whole extent.
  Box box(const MeshShape& mesh, const Coordinates& at) const;
  /// Extents of the piece at coordinates zero, which no other exceeds.
  Shape largest_piece(const MeshShape& mesh) const;
  /// Axes that cut `dim`, outermost first.
  std::vector<int> cutting(const MeshShape& mesh, int dim) const;
  bool operator==(const Layout&) const = default;
  std::string to_string(const MeshShape& mesh) const;
};

/// Elements [begin, end) of a dim.
struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};
/// What a box covers of a dim.
inline Range range_of(const Box& box, int dim) {
  return {box.begin[dim], box.end(dim)};
}
/// Part `index` of `count` of `extent` elements, cut first-remainder.
Range cut_range(std::int64_t extent, int count, int index);

}  // namespace jigsaw::inline parallel
