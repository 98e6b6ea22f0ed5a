#include "parallel/redistribute.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "kernels/copy.h"
#include "kernels/pointwise.h"
#include "parallel/all_to_all.h"

namespace jigsaw::inline parallel {

namespace {

/// Axes whose piece of some dim depends on what changes: per dim, all axes that cut it in either layout, less
/// the outermost ones that cut it alike in both.
AxisSet moving_axes(const MeshShape& mesh, const Layout& from, const Layout& to) {
  AxisSet axes = 0;
  std::uint32_t moved = 0;  // dims that some axis so far cuts in one layout otherwise than in the other
  const auto dim_of = [](const Placement& p) { return p.is_shard() ? 1U << p.dim : 0U; };
  for (int axis = 0; axis < mesh.axes; ++axis) {
    if (mesh.size[static_cast<std::size_t>(axis)] == 1) continue;
    const Placement &before = from.placements[axis], &after = to.placements[axis];
    const std::uint32_t dims = dim_of(before) | dim_of(after);
    if (!(before == after)) moved |= dims;
    if ((dims & moved) != 0) axes |= axis_bit(axis);
  }
  return axes;
}

bool all_of_axes(const MeshShape& mesh, AxisSet axes, const Placements& placements, Placement::Kind kind) {
  for (int axis = 0; axis < mesh.axes; ++axis) {
    if (contains(axes, axis) && placements[axis].kind != kind) return false;
  }
  return true;
}

/// `base` with the placements of `axes` taken from `other`.
Layout with_axes(const MeshShape& mesh, Layout base, AxisSet axes, const Layout& other) {
  for (int axis = 0; axis < mesh.axes; ++axis) {
    if (contains(axes, axis)) base.placements[axis] = other.placements[axis];
  }
  return base;
}

}  // namespace

Steps redistribution_steps(const MeshShape& mesh, const Layout& from, const Layout& to) {
  if (!(from.global == to.global))
    throw ShapeError(concat("cannot redistribute ", from.global, " to ", to.global));
  Steps steps;
  Layout now = from;
  AxisSet summed = 0, scattered = 0;
  for (int axis = 0; axis < mesh.axes; ++axis) {
    if (mesh.size[static_cast<std::size_t>(axis)] == 1) {
      now.placements[axis] = to.placements[axis];
      continue;
    }
    if (now.placements[axis] == to.placements[axis]) continue;
    if (to.placements[axis].is_partial()) {
      throw ShapeError(concat("cannot make ", from.to_string(mesh), " partial as ", to.to_string(mesh)));
    }
    if (now.placements[axis].is_partial())
      (to.placements[axis].is_shard() ? scattered : summed) |= axis_bit(axis);
  }
  if (scattered != 0) {
    // A reduce-scatter cuts what is here; a cut outside of one that stands moves pieces too, so sum first
    // there.
    Layout next = with_axes(mesh, now, scattered, to);
    if ((moving_axes(mesh, now, next) & ~scattered) == 0) {
      steps.push_back({Collective::kReduceScatter, scattered, next});
      now = next;
    } else {
      summed |= scattered;
    }
  }
  if (summed != 0) {
    for (int axis = 0; axis < mesh.axes; ++axis) {
      if (contains(summed, axis)) now.placements[axis] = Placement::replicate();
    }
    steps.push_back({Collective::kAllReduce, summed, now});
  }
  const AxisSet moving = moving_axes(mesh, now, to);
  if (moving != 0) {
    Collective kind = Collective::kAllToAll;
    if (all_of_axes(mesh, moving, to.placements, Placement::Kind::kReplicate)) kind = Collective::kAllGather;
    if (all_of_axes(mesh, moving, now.placements, Placement::Kind::kReplicate)) kind = Collective::kBroadcast;
    steps.push_back({kind, moving, to});
  }
  return steps;
}

bool feeds(const Step& step, const Layout& held, const Coordinates& from, const Coordinates& to) {
  for (int axis = 0; axis < kMaxAxes; ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    if (contains(step.axes, axis) && held.placements[axis].is_replicate() && from[a] != to[a]) return false;
  }
  return true;
}

namespace {

/// Boxes of `layout` for each member of the group along `axes`, in the group's order.
std::vector<Box> member_boxes(const Rank& rank, AxisSet axes, const Layout& layout) {
  std::vector<Box> boxes(static_cast<std::size_t>(rank.mesh.size(axes)));
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    boxes[i] = layout.box(rank.mesh.shape(), rank.mesh.member(axes, static_cast<int>(i)));
  }
  return boxes;
}

std::vector<std::int64_t> counts_of(const std::vector<Box>& boxes) {
  std::vector<std::int64_t> counts;
  for (const Box& box : boxes) counts.push_back(box.extent.count());
  return counts;
}

std::int64_t sum(const std::vector<std::int64_t>& counts) {
  std::int64_t total = 0;
  for (const std::int64_t count : counts) total += count;
  return total;
}

/// The boxes of `array` (which holds `held`) one after the other; the array itself when that is what it is.
Array pack(const Rank& rank, const Array& array, const Box& held, const std::vector<Box>& boxes) {
  if (boxes.size() == 1 && boxes[0] == held) return array.reshaped({array.count()});
  Array packed(rank.context, {sum(counts_of(boxes))}, array.dtype(), Purpose::kWorkspace);
  std::int64_t first = 0;
  for (const Box& box : boxes) {
    if (box.empty()) continue;
    Array part = packed.slice(first, box.extent);
    copy_box(rank.context, array, relative_to(box, held), part, Box::whole(box.extent));
    first += box.extent.count();
  }
  return packed;
}

/// The inverse of pack: a fresh array that holds `held`, filled from boxes that cover it.
Array unpack(const Rank& rank, const Array& packed, const Box& held, const std::vector<Box>& boxes) {
  for (const Box& box : boxes) {
    if (box == held && packed.count() == held.extent.count()) return packed.reshaped(held.extent);
  }
  Array result(rank.context, held.extent, packed.dtype());
  std::int64_t first = 0;
  for (const Box& box : boxes) {
    if (box.empty()) continue;
    copy_box(rank.context, packed.slice(first, box.extent), Box::whole(box.extent), result,
             relative_to(box, held));
    first += box.extent.count();
  }
  return result;
}

Array gather(const Rank& rank, const Step& step, const ShardedTensor& x, const Box& target) {
  const std::vector<Box> boxes = member_boxes(rank, step.axes, x.layout);
  const Array all =
      rank.mesh.communicator(step.axes).all_gather(x.piece.reshaped({x.piece.count()}), counts_of(boxes));
  // Pieces that are consecutive rows of the whole need no second copy.
  bool rows = true;
  std::int64_t next = target.begin.rank() > 0 ? target.begin[0] : 0;
  for (const Box& box : boxes) {
    if (box.empty()) continue;
    for (int dim = 1; dim < target.begin.rank(); ++dim) rows = rows && box.extent[dim] == target.extent[dim];
    rows = rows && box.begin[0] == next;
    next = box.end(0);
  }
  return rows ? all.reshaped(target.extent) : unpack(rank, all, target, boxes);
}

/// Every member sends each other the part of its piece that the other wants.
Array exchange_pieces(const Rank& rank, const Step& step, const ShardedTensor& x, const Box& source,
                      const Box& target) {
  const MeshShape& mesh = rank.mesh.shape();
  const Coordinates& here = rank.mesh.coordinates();
  const Box nothing{Shape::filled(source.begin.rank(), 0), Shape::filled(source.begin.rank(), 0)};
  std::vector<Box> sends, receives;
  for (int i = 0; i < rank.mesh.size(step.axes); ++i) {
    const Coordinates there = rank.mesh.member(step.axes, i);
    sends.push_back(feeds(step, x.layout, here, there) ? intersect(source, step.to.box(mesh, there))
                                                       : nothing);
    receives.push_back(feeds(step, x.layout, there, here) ? intersect(target, x.layout.box(mesh, there))
                                                          : nothing);
  }
  const Array packed = pack(rank, x.piece, source, sends);
  const auto element = static_cast<double>(size_of(x.piece.dtype()));
  const Array arrived = rank.mesh.communicator(step.axes).all_to_all(
      packed, counts_of(sends), counts_of(receives), forwarded_block(mesh, step, x.layout, element));
  return unpack(rank, arrived, target, receives);
}

Array apply(const Rank& rank, const Step& step, const ShardedTensor& x) {
  const Box source = rank.box(x.layout), target = rank.box(step.to);
  switch (step.kind) {
    case Collective::kBroadcast:
      return extract_box(rank.context, x.piece, relative_to(target, source));
    case Collective::kAllGather:
      return gather(rank, step, x, target);
    case Collective::kAllReduce:
      return rank.mesh.communicator(step.axes).all_reduce(x.piece).reshaped(target.extent);
    case Collective::kReduceScatter: {
      const std::vector<Box> boxes = member_boxes(rank, step.axes, step.to);
      const Array packed = pack(rank, x.piece, source, boxes);
      return rank.mesh.communicator(step.axes)
          .reduce_scatter(packed, counts_of(boxes))
          .reshaped(target.extent);
    }
    default:
      return exchange_pieces(rank, step, x, source, target);
  }
}

}  // namespace

ShardedTensor redistribute(const Rank& rank, const ShardedTensor& x, const Layout& to) {
  ShardedTensor now = x;
  for (const Step& step : redistribution_steps(rank.mesh.shape(), x.layout, to)) {
    now = {apply(rank, step, now), step.to};
  }
  now.layout = to;
  return now;
}

}  // namespace jigsaw::inline parallel
