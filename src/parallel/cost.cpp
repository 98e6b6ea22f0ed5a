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

namespace {

/// Moves `at` to the next member of the group along `axes`; false after the last one.
bool next_member(const MeshShape& mesh, AxisSet axes, Coordinates& at) {
  for (int axis = 0; axis < mesh.axes; ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    if (!contains(axes, axis)) continue;
    if (++at[a] < mesh.size[a]) return true;
    at[a] = 0;
  }
  return false;
}

/// Elements that the first rank sends to others in an all-to-all. Where all of the group's axes cut what is
/// held, every element goes to each member that wants it: as many as the new layout has copies of it.
std::int64_t exchanged_elements(const MeshShape& mesh, const Step& step, const Layout& held,
                                const Shape& source, const Shape& target) {
  bool cut = true;
  std::int64_t copies = 1, kept = 1;
  for (int axis = 0; axis < mesh.axes; ++axis) {
    if (!contains(step.axes, axis)) continue;
    cut = cut && held.placements[axis].is_shard();
    if (step.to.placements[axis].is_replicate()) copies *= mesh.size[static_cast<std::size_t>(axis)];
  }
  if (cut) {
    for (int dim = 0; dim < source.rank(); ++dim) kept *= std::min(source[dim], target[dim]);
    return source.count() * copies - kept;
  }
  const Coordinates first{};
  const Box box = held.box(mesh, first);
  std::int64_t elements = 0;
  for (Coordinates there{}; next_member(mesh, step.axes, there);) {
    if (feeds(step, held, first, there)) elements += intersect(box, step.to.box(mesh, there)).extent.count();
  }
  return elements;
}

}  // namespace

TransferCost transfer_cost(const MeshShape& mesh, const Layout& from, const Layout& to,
                           double element_bytes) {
  TransferCost cost;
  if (from == to) return cost;
  const Layout* now = &from;
  Shape source = from.largest_piece(mesh);
  const Steps steps = redistribution_steps(mesh, from, to);
  for (const Step& step : steps) {
    double ranks = 1;
    for (int axis = 0; axis < mesh.axes; ++axis) {
      if (contains(step.axes, axis)) ranks *= mesh.size[static_cast<std::size_t>(axis)];
    }
    const Shape target = step.to.largest_piece(mesh);
    const auto elements = static_cast<double>(source.count());
    double sent = 0;
    switch (step.kind) {
      case Collective::kAllGather:
        sent = (ranks - 1) * elements;
        break;
      case Collective::kReduceScatter:
        sent = elements - static_cast<double>(target.count());
        break;
      case Collective::kAllReduce:
        sent = 2 * (ranks - 1) / ranks * elements;
        break;
      case Collective::kAllToAll:
        sent = static_cast<double>(exchanged_elements(mesh, step, *now, source, target));
        break;
      default:
        break;
    }
    cost.bytes[static_cast<std::size_t>(step.kind)] += sent * element_bytes;
    if (step.kind != Collective::kBroadcast) ++cost.messages;
    now = &step.to;
    source = target;
  }
  return cost;
}

}  // namespace jigsaw
