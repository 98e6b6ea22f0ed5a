#include "parallel/cost.h"

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

/// Elements that the first rank sends to others in an all-to-all.
std::int64_t exchanged_elements(const MeshShape& mesh, const Step& step, const Layout& held) {
  const Coordinates first{};
  const Box source = held.box(mesh, first);
  std::int64_t elements = 0;
  for (Coordinates there{}; next_member(mesh, step.axes, there);) {
    if (feeds(step, held, first, there))
      elements += intersect(source, step.to.box(mesh, there)).extent.count();
  }
  return elements;
}

}  // namespace

TransferCost transfer_cost(const MeshShape& mesh, const Layout& from, const Layout& to,
                           double element_bytes) {
  TransferCost cost;
  // Coordinates zero hold the largest pieces of a first-remainder cut.
  const Coordinates first{};
  Layout now = from;
  for (const Step& step : redistribution_steps(mesh, from, to)) {
    double ranks = 1;
    for (int axis = 0; axis < mesh.axes; ++axis) {
      if (contains(step.axes, axis)) ranks *= mesh.size[static_cast<std::size_t>(axis)];
    }
    const auto source = static_cast<double>(now.box(mesh, first).extent.count());
    const auto target = static_cast<double>(step.to.box(mesh, first).extent.count());
    double sent = 0;
    switch (step.kind) {
      case Collective::kAllGather:
        sent = (ranks - 1) * source;
        break;
      case Collective::kReduceScatter:
        sent = source - target;
        break;
      case Collective::kAllReduce:
        sent = 2 * (ranks - 1) / ranks * source;
        break;
      case Collective::kAllToAll:
        sent = static_cast<double>(exchanged_elements(mesh, step, now));
        break;
      default:
        break;
    }
    cost.bytes[static_cast<std::size_t>(step.kind)] += sent * element_bytes;
    if (step.kind != Collective::kBroadcast) ++cost.messages;
    now = step.to;
  }
  return cost;
}

}  // namespace jigsaw
