#include "parallel/all_to_all.h"

#include <algorithm>

#include "comm/levels.h"

namespace jigsaw::inline parallel {

namespace {

/// Parts into which axes of a set cut a dim, and the largest unit of theirs.
struct Parts {
  double count = 1;
  std::int64_t unit = 1;
};
Parts parts_of(const MeshShape& mesh, const Layout& layout, int dim, AxisSet axes) {
  Parts parts;
  for (const int axis : layout.cutting(mesh, dim)) {
    if (!contains(axes, axis)) continue;
    parts.count *= mesh.size[static_cast<std::size_t>(axis)];
    parts.unit = std::max<std::int64_t>(parts.unit, layout.placements[axis].unit);
  }
  return parts;
}

/// The most other ranks that a rank sends to: how many parts of the target overlap its piece, as a product
/// over dims.
double peers_of(const MeshShape& mesh, const Step& step, const Layout& held) {
  AxisSet free = 0;  // along which a rank sends to others than those with its own coordinate
  double ranks = 1, peers = 1;
  for (int axis = 0; axis < mesh.axes; ++axis) {
    if (!contains(step.axes, axis)) continue;
    const int size = mesh.size[static_cast<std::size_t>(axis)];
    ranks *= size;
    if (!held.placements[axis].is_shard()) continue;
    free |= axis_bit(axis);
    if (step.to.placements[axis].is_replicate()) peers *= size;
  }
  const Shape before = held.largest_piece(mesh), after = step.to.largest_piece(mesh);
  for (int dim = 0; dim < before.rank(); ++dim) {
    const Parts own = parts_of(mesh, held, dim, step.axes), theirs = parts_of(mesh, step.to, dim, free);
    const std::int64_t least = std::max<std::int64_t>(1, after[dim] - theirs.unit);
    peers *=
        own.count == 1 ? theirs.count : std::min(theirs.count, static_cast<double>(before[dim] / least + 2));
  }
  return std::min(peers, ranks - 1);
}

}  // namespace

std::int64_t forwarded_block(const MeshShape& mesh, const Step& step, const Layout& held,
                             double element_bytes) {
  int ranks = 1;
  for (int axis = 0; axis < mesh.axes; ++axis) {
    if (contains(step.axes, axis)) ranks *= mesh.size[static_cast<std::size_t>(axis)];
  }
  const Shape before = held.largest_piece(mesh), after = step.to.largest_piece(mesh);
  std::int64_t block = 1;
  for (int dim = 0; dim < before.rank(); ++dim) block *= std::min(before[dim], after[dim]);
  const double bytes = static_cast<double>(block) * element_bytes;
  return forwarding(ranks, peers_of(mesh, step, held), bytes).worth_it ? block : 0;
}

}  // namespace jigsaw::inline parallel
