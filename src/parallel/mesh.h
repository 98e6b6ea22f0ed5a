#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "parallel/layout.h"

namespace jigsaw::inline parallel {

/// The ranks of a job as a grid with named axes. Axis 0 is `data`, then come the `domain` axes, one per
/// spatial dimension, then `tensor`; rank order: tensor fastest. Axes of size 1 are kept, so that axis
/// numbers do not depend on the sizes.
class Mesh {
 public:
  /// @param domain  one entry per spatial dimension.
  /// @throws ConfigError when data × domain × tensor is not the number of ranks; says what would fit.
  Mesh(Communicator& world, int data, const std::vector<int>& domain, int tensor);

  const MeshShape& shape() const { return shape_; }
  const Coordinates& coordinates() const { return coordinates_; }
  int size(int axis) const { return shape_.size[static_cast<std::size_t>(axis)]; }
  int coordinate(int axis) const { return coordinates_[static_cast<std::size_t>(axis)]; }
  int domain_axes() const { return shape_.axes - 2; }
  static constexpr int kData = 0;
  int domain(int spatial_dim) const { return 1 + spatial_dim; }
  int tensor() const { return shape_.axes - 1; }
  std::string axis_name(int axis) const;

  AxisSet all_axes() const { return axis_bit(shape_.axes) - 1; }
  /// Only the axes with more than one rank.
  AxisSet active(AxisSet axes) const;
  int size(AxisSet axes) const;

  Communicator& world() const { return *world_; }
  /// The ranks that differ from this one only along these axes, in rank order. Made at first use, which is
  /// collective over the whole mesh.
  Communicator& communicator(AxisSet axes);
  /// Coordinates of the member `index` of communicator(axes).
  Coordinates member(AxisSet axes, int index) const;

  /// The layout in which fields [B, space…, C] enter and leave blocks: data cuts samples, domain axes cut
  /// space in units (patches), tensor cuts channels.
  Layout field_layout(const Shape& global, const std::vector<std::int64_t>& space_units = {}) const;

 private:
  Communicator* world_;
  MeshShape shape_;
  Coordinates coordinates_{};
  std::map<AxisSet, std::unique_ptr<Communicator>> groups_;
};

}  // namespace jigsaw::inline parallel
