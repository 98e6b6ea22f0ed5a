#include "parallel/mesh.h"

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline parallel {

Mesh::Mesh(Communicator& world, int data, const std::vector<int>& domain, int tensor) : world_(&world) {
  std::vector<int> sizes = {data};
  sizes.insert(sizes.end(), domain.begin(), domain.end());
  sizes.push_back(tensor);
  require(sizes.size() <= kMaxAxes, "too many mesh axes");
  shape_.axes = static_cast<int>(sizes.size());
  std::copy(sizes.begin(), sizes.end(), shape_.size.begin());
  if (shape_.ranks() != world.size()) {
    throw ConfigError(concat("mesh: data ", data, " × domain [", join(domain, ", "), "] × tensor ", tensor,
                             " needs ", shape_.ranks(), " ranks, but ", world.size(),
                             world.size() == 1 ? " was" : " were",
                             " started; start as many, or set mesh to \"auto\""));
  }
  coordinates_ = shape_.coordinates(world.rank());
}

std::string Mesh::axis_name(int axis) const {
  if (axis == kData) return "data";
  if (axis == tensor()) return "tensor";
  return domain_axes() == 1 ? "domain" : concat("domain", axis - 1);
}

AxisSet Mesh::active(AxisSet axes) const {
  AxisSet result = 0;
  for (int axis = 0; axis < shape_.axes; ++axis) {
    if (contains(axes, axis) && size(axis) > 1) result |= axis_bit(axis);
  }
  return result;
}

int Mesh::size(AxisSet axes) const {
  int product = 1;
  for (int axis = 0; axis < shape_.axes; ++axis) {
    if (contains(axes, axis)) product *= size(axis);
  }
  return product;
}

Communicator& Mesh::communicator(AxisSet axes) {
  axes = active(axes);
  std::unique_ptr<Communicator>& group = groups_[axes];
  if (!group) {
    std::vector<std::string> names;
    for (int axis = 0; axis < shape_.axes; ++axis) {
      if (contains(axes, axis)) names.push_back(axis_name(axis));
    }
    group = world_->split(join(names, "×"), [mesh = shape_, axes](int rank) {
      int color = 0;
      const Coordinates at = mesh.coordinates(rank);
      for (int axis = 0; axis < mesh.axes; ++axis) {
        const auto a = static_cast<std::size_t>(axis);
        if (!contains(axes, axis)) color = color * mesh.size[a] + at[a];
      }
      return std::pair(color, rank);
    });
  }
  return *group;
}

Coordinates Mesh::member(AxisSet axes, int index) const {
  Coordinates at = coordinates_;
  for (int axis = shape_.axes - 1; axis >= 0; --axis) {
    if (!contains(axes, axis)) continue;
    at[static_cast<std::size_t>(axis)] = index % size(axis);
    index /= size(axis);
  }
  return at;
}

Layout Mesh::field_layout(const Shape& global, const std::vector<std::int64_t>& space_units) const {
  require(global.rank() == domain_axes() + 2, "a field has a sample, space and a channel dimension");
  Layout layout{global, {}};
  layout.placements[kData] = Placement::shard(0);
  for (int dim = 0; dim < domain_axes(); ++dim) {
    const std::int64_t unit = space_units.empty() ? 1 : space_units[static_cast<std::size_t>(dim)];
    layout.placements[domain(dim)] = Placement::shard(1 + dim, unit);
  }
  layout.placements[tensor()] = Placement::shard(global.rank() - 1);
  return layout;
}

}  // namespace jigsaw::inline parallel
