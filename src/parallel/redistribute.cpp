#include "parallel/redistribute.h"

#include <numeric>
#include <optional>
#include <span>

#include "base/error.h"
#include "base/text.h"
#include "kernels/copy.h"
#include "parallel/all_to_all.h"
#include "parallel/book.h"

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
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

/// Whether boxes of `held`, one after the other, are all of it as it stands in memory: cut along its first
/// dim of more than one element, in order.
bool stand_so(const Box& held, const std::vector<Box>& boxes) {
  const int rank = held.begin.rank();
  int cut = 0;
  while (cut + 1 < rank && held.extent[cut] == 1) ++cut;
  std::int64_t count = 0;
  std::int64_t next = rank > 0 ? held.begin[cut] : 0;
  for (const Box& box : boxes) {
    if (box.empty()) continue;
    count += box.extent.count();
    for (int dim = 0; dim < rank; ++dim) {
      if (dim == cut ? box.begin[dim] != next : box.extent[dim] != held.extent[dim]) return false;
    }
    if (rank > 0) next = box.end(cut);
  }
  return count == held.extent.count();
}

/// Boxes of an array that holds `held`, one after the other; no table where they stand so.
std::optional<BoxTable> packing(const Box& held, const std::vector<Box>& boxes) {
  if (stand_so(held, boxes)) return std::nullopt;
  BoxTable table;
  std::int64_t first = 0;
  for (const Box& box : boxes) {
    table.copy(0, {0, held.extent, relative_to(box, held)}, {first, box.extent, Box::whole(box.extent)});
    first += box.extent.count();
  }
  return table;
}

/// The inverse, for boxes that cover `held`.
std::optional<BoxTable> unpacking(const Box& held, const std::vector<Box>& boxes) {
  if (stand_so(held, boxes)) return std::nullopt;
  BoxTable table;
  std::int64_t first = 0;
  for (const Box& box : boxes) {
    table.copy(0, {first, box.extent, Box::whole(box.extent)}, {0, held.extent, relative_to(box, held)});
    first += box.extent.count();
  }
  return table;
}

/// What a table makes of an array; the array itself where there is none.
Array rearranged(const Rank& rank, const std::optional<BoxTable>& table, const Array& array,
                 const Shape& shape, Purpose purpose) {
  if (!table) return array.reshaped(shape);
  Array result(rank.context, shape, array.dtype(), purpose);
  copy_boxes(rank.context, *table, std::span(&array, 1), result);
  return result;
}

/// A step of a redistribution as this rank takes it.
struct CompiledStep {
  Step step;
  Layout held;  ///< before it
  Box source, target;
  std::vector<std::int64_t> sends, receives;  ///< elements by member, as far as the collective asks for them
  std::optional<BoxTable> pack, unpack;
};

/// Every member sends each other the part of its piece that the other wants.
void compile_exchange(const Rank& rank, CompiledStep& all) {
  const MeshShape& mesh = rank.mesh.shape();
  const Coordinates& here = rank.mesh.coordinates();
  const Box nothing{Shape::filled(all.source.begin.rank(), 0), Shape::filled(all.source.begin.rank(), 0)};
  std::vector<Box> sends, receives;
  for (int i = 0; i < rank.mesh.size(all.step.axes); ++i) {
    const Coordinates there = rank.mesh.member(all.step.axes, i);
    sends.push_back(feeds(all.step, all.held, here, there)
                        ? intersect(all.source, all.step.to.box(mesh, there))
                        : nothing);
    receives.push_back(
        feeds(all.step, all.held, there, here) ? intersect(all.target, all.held.box(mesh, there)) : nothing);
  }
  all.sends = counts_of(sends);
  all.receives = counts_of(receives);
  all.pack = packing(all.source, sends);
  all.unpack = unpacking(all.target, receives);
}

CompiledStep compile(const Rank& rank, const Step& step, const Layout& held) {
  CompiledStep all{step, held, rank.box(held), rank.box(step.to), {}, {}, {}, {}};
  if (step.kind == Collective::kAllGather) {
    const std::vector<Box> boxes = member_boxes(rank, step.axes, held);
    all.receives = counts_of(boxes);
    all.unpack = unpacking(all.target, boxes);
  } else if (step.kind == Collective::kReduceScatter) {
    const std::vector<Box> boxes = member_boxes(rank, step.axes, step.to);
    all.sends = counts_of(boxes);
    all.pack = packing(all.source, boxes);
  } else if (step.kind == Collective::kAllToAll) {
    compile_exchange(rank, all);
  }
  return all;
}

Array apply(const Rank& rank, const CompiledStep& all, const Array& piece) {
  if (all.step.kind == Collective::kBroadcast)
    return extract_box(rank.context, piece, relative_to(all.target, all.source));
  Communicator& group = rank.mesh.communicator(all.step.axes);
  const auto pack = [&] { return rearranged(rank, all.pack, piece, {sum(all.sends)}, Purpose::kWorkspace); };
  const auto unpack = [&](const Array& arrived) {
    return rearranged(rank, all.unpack, arrived, all.target.extent, Purpose::kActivations);
  };
  switch (all.step.kind) {
    case Collective::kAllGather:
      return unpack(group.all_gather(piece.reshaped({piece.count()}), all.receives));
    case Collective::kAllReduce:
      return group.all_reduce(piece).reshaped(all.target.extent);
    case Collective::kReduceScatter:
      return group.reduce_scatter(pack(), all.sends).reshaped(all.target.extent);
    default: {
      const auto element = static_cast<double>(size_of(piece.dtype()));
      const std::int64_t forwarded = forwarded_block(rank.mesh.shape(), all.step, all.held, element);
      return unpack(group.all_to_all(pack(), all.sends, all.receives, forwarded));
    }
  }
}

/// What a redistribution is compiled for.
struct RedistributionKey {
  Layout from, to;
  MeshShape mesh;
  Coordinates at;
  bool operator==(const RedistributionKey&) const = default;
};
using CompiledSteps = std::vector<CompiledStep>;

std::shared_ptr<const CompiledSteps> compiled_steps(const Rank& rank, const Layout& from, const Layout& to) {
  return rank.context.state<Book<RedistributionKey, CompiledSteps>>().of(
      {from, to, rank.mesh.shape(), rank.mesh.coordinates()}, [&] {
        auto steps = std::make_shared<CompiledSteps>();
        Layout held = from;
        for (const Step& step : redistribution_steps(rank.mesh.shape(), from, to)) {
          steps->push_back(compile(rank, step, held));
          held = step.to;
        }
        return steps;
      });
}

}  // namespace

ShardedTensor redistribute(const Rank& rank, const ShardedTensor& x, const Layout& to) {
  Array piece = x.piece;
  if (!(x.layout == to)) {
    for (const CompiledStep& step : *compiled_steps(rank, x.layout, to)) piece = apply(rank, step, piece);
  }
  return {piece, to};
}

}  // namespace jigsaw::inline parallel
