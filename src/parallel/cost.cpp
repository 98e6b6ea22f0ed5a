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

TransferCost transfer_cost(const MeshShape& mesh, const Layout& from, const Layout& to, double element_bytes) {
  TransferCost cost;
  // Coordinates zero hold the largest pieces of a first-remainder cut.
  const Coordinates first{};
  Layout now = from;
  for (const Step& step : redistribution_steps(mesh, from, to)) {
    double ranks = 1;
    for (int axis = 0; axis < mesh.axes; ++axis) {
      if (contains(step.axes, axis)) ranks *= mesh.size[static_cast<std::size_t>(axis)];
    }
    const Box source_box = now.box(mesh, first), target_box = step.to.box(mesh, first);
    const double source = static_cast<double>(source_box.extent.count());
    const double target = static_cast<double>(target_box.extent.count());
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
        sent = source - static_cast<double>(intersect(source_box, target_box).extent.count());
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
