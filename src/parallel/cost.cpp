#include "parallel/cost.h"

#include <algorithm>

namespace jigsaw {

double TransferCost::total_bytes() const {
  double total = 0;
  for (const double b : bytes) total += b;
  return total;
}

double TransferCost::seconds(const CostModel& model) const {
  return messages * model.latency_seconds + total_bytes() / model.network_bytes_per_second;
}

TransferCost& TransferCost::operator+=(const TransferCost& other) {
  for (std::size_t kind = 0; kind < bytes.size(); ++kind) bytes[kind] += other.bytes[kind];
  messages += other.messages;
  return *this;
}

void TransferCost::add(Collective kind, double more, double in_messages) {
  if (more == 0) return;
  bytes[static_cast<std::size_t>(kind)] += more;
  messages += static_cast<int>(in_messages);
}

namespace {

/// Calls f with the coordinates of each member of the group along `axes`, those of other axes zero.
template <typename F>
void for_members(const MeshShape& mesh, AxisSet axes, const F& f) {
  Coordinates at{};
  for (bool more = true; more;) {
    f(at);
    more = false;
    for (int axis = 0; axis < mesh.axes && !more; ++axis) {
      const auto a = static_cast<std::size_t>(axis);
      if (!contains(axes, axis)) continue;
      more = ++at[a] < mesh.size[a];
      if (!more) at[a] = 0;
    }
  }
}

/// Whether the pieces that some rank has of two layouts have nothing in common: some dim is cut by an axis in
/// the one where another cuts it in the other.
bool some_are_apart(const MeshShape& mesh, const Layout& a, const Layout& b) {
  for (int dim = 0; dim < a.global.rank(); ++dim) {
    int of_a = 0, of_b = 0;
    const auto next = [&](const Layout& layout, int& axis) {
      while (axis < mesh.axes && (mesh.size[static_cast<std::size_t>(axis)] == 1 ||
                                  !layout.placements[axis].is_shard() || layout.placements[axis].dim != dim))
        ++axis;
      return axis < mesh.axes;
    };
    for (; next(a, of_a) && next(b, of_b); ++of_a, ++of_b) {
      if (of_a != of_b) return true;
    }
  }
  return false;
}

/// Elements that the busiest rank sends in an all-to-all, up to what uneven pieces differ by. Where all of
/// the group's axes cut what is held, as many copies of it go out as the new layout has.
std::int64_t most_sent_elements(const MeshShape& mesh, const Step& step, const Layout& held) {
  bool cut = true;
  std::int64_t copies = 1;
  for (int axis = 0; axis < mesh.axes; ++axis) {
    if (!contains(step.axes, axis)) continue;
    cut = cut && held.placements[axis].is_shard();
    if (step.to.placements[axis].is_replicate()) copies *= mesh.size[static_cast<std::size_t>(axis)];
  }
  if (cut) {
    const Shape source = held.largest_piece(mesh), target = step.to.largest_piece(mesh);
    std::int64_t kept = some_are_apart(mesh, held, step.to) ? 0 : 1;
    for (int dim = 0; dim < source.rank(); ++dim) kept *= std::min(source[dim], target[dim]);
    return source.count() * copies - kept;
  }
  std::int64_t most = 0;
  for_members(mesh, step.axes, [&](const Coordinates& here) {
    const Box source = held.box(mesh, here);
    std::int64_t elements = 0;
    for_members(mesh, step.axes, [&](const Coordinates& there) {
      if (there != here && feeds(step, held, here, there))
        elements += intersect(source, step.to.box(mesh, there)).extent.count();
    });
    most = std::max(most, elements);
  });
  return most;
}

/// Elements that the member with the least of the result keeps for itself in a reduce-scatter: the last one.
std::int64_t least_kept(const MeshShape& mesh, const Step& step) {
  Coordinates last{};
  for (int axis = 0; axis < mesh.axes; ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    if (contains(step.axes, axis)) last[a] = mesh.size[a] - 1;
  }
  return step.to.box(mesh, last).extent.count();
}

}  // namespace

TransferCost transfer_cost(const MeshShape& mesh, const Layout& from, const Layout& to,
                           double element_bytes) {
  TransferCost cost;
  if (from == to) return cost;
  const Layout* now = &from;
  const Steps steps = redistribution_steps(mesh, from, to);
  for (const Step& step : steps) {
    double ranks = 1;
    for (int axis = 0; axis < mesh.axes; ++axis) {
      if (contains(step.axes, axis)) ranks *= mesh.size[static_cast<std::size_t>(axis)];
    }
    const auto elements = static_cast<double>(now->largest_piece(mesh).count());
    double sent = 0;
    switch (step.kind) {
      case Collective::kAllGather:
        sent = (ranks - 1) * elements;
        break;
      case Collective::kAllReduce:
        sent = 2 * (ranks - 1) / ranks * elements;
        break;
      case Collective::kReduceScatter:
        sent = elements - static_cast<double>(least_kept(mesh, step));
        break;
      case Collective::kAllToAll:
        sent = static_cast<double>(most_sent_elements(mesh, step, *now));
        break;
      default:
        break;
    }
    cost.bytes[static_cast<std::size_t>(step.kind)] += sent * element_bytes;
    if (step.kind != Collective::kBroadcast) ++cost.messages;
    now = &step.to;
  }
  return cost;
}

}  // namespace jigsaw
