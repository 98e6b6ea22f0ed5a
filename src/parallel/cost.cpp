#include "parallel/cost.h"

#include <algorithm>

#include "parallel/sent_elements.h"

namespace jigsaw::inline parallel {

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

}  // namespace jigsaw::inline parallel
