#include "parallel/cost.h"

#include <algorithm>
#include <cmath>

namespace jigsaw::inline parallel {

namespace {

/// Of `size` ranks, each `inner` after the one before, those that share a node; 0 where nodes part them
/// unevenly.
int share_a_node(int size, int inner, int ranks_per_node) {
  if (size == 1 || ranks_per_node % (inner * size) == 0) return size;
  if (ranks_per_node % inner == 0 && size % (ranks_per_node / inner) == 0) return ranks_per_node / inner;
  return inner % ranks_per_node == 0 ? 1 : 0;
}

}  // namespace

std::array<int, kMaxAxes> ranks_in_node(const MeshShape& mesh, int ranks_per_node) {
  const bool one_node = mesh.ranks() <= ranks_per_node;
  std::array<int, kMaxAxes> counts{};
  int inner = 1;
  for (int axis = mesh.axes - 1; axis >= 0; --axis) {
    const auto a = static_cast<std::size_t>(axis);
    counts[a] = one_node ? mesh.size[a] : share_a_node(mesh.size[a], inner, ranks_per_node);
    inner *= mesh.size[a];
  }
  return counts;
}

AxisSet axes_within_nodes(const MeshShape& mesh, int ranks_per_node) {
  const std::array<int, kMaxAxes> in_node = ranks_in_node(mesh, ranks_per_node);
  AxisSet within = 0;
  for (int axis = 0; axis < mesh.axes; ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    if (in_node[a] == mesh.size[a]) within |= axis_bit(axis);
  }
  return within;
}

NodeGrid node_grid(const MeshShape& mesh, AxisSet axes, int ranks_per_node) {
  if (mesh.ranks() <= ranks_per_node) return {};
  NodeGrid grid;
  // Neighbouring axes are one: nodes may part evenly what they do not part evenly along each.
  int inner = 1;
  for (int axis = mesh.axes - 1; axis >= 0; --axis) {
    int size = 1;
    for (; axis >= 0 && contains(axes, axis); --axis) size *= mesh.size[static_cast<std::size_t>(axis)];
    const int local = share_a_node(size, inner, ranks_per_node);
    if (local == 0) return {};
    grid.local *= local;
    grid.nodes *= size / local;
    inner *= size * (axis >= 0 ? mesh.size[static_cast<std::size_t>(axis)] : 1);
  }
  return grid.several() ? grid : NodeGrid{};
}

const Link& CostModel::link(const MeshShape& mesh, AxisSet axes) const {
  const bool within = ranks_per_node > 1 && (axes & ~axes_within_nodes(mesh, ranks_per_node)) == 0;
  return within ? node : network;
}

double CostModel::seconds(const MeshShape& mesh, AxisSet axes, const TransferCost& sent) const {
  double seconds = sent.seconds(link(mesh, axes));
  if (std::isinf(two_levels_from)) return seconds;
  const NodeGrid grid = node_grid(mesh, axes, ranks_per_node);
  if (!grid.several()) return seconds;
  const double saved_per_byte =
      (1 - grid.share_between()) * (1 / network.bytes_per_second - 1 / node.bytes_per_second);
  for (const Collective kind : {Collective::kAllGather, Collective::kReduceScatter, Collective::kAllReduce}) {
    const int calls = kind == Collective::kAllReduce ? 2 : 1;  // reduces, then gathers
    const double bytes = sent.bytes[static_cast<std::size_t>(kind)];
    if (bytes == 0 || grid.bytes_kept_within(bytes / calls) < two_levels_from) continue;
    seconds += calls * node.latency_seconds - bytes * saved_per_byte;
  }
  return seconds;
}

double CostModel::seconds_per_byte(const MeshShape& mesh, AxisSet axes) const {
  const double direct = 1 / link(mesh, axes).bytes_per_second;
  if (std::isinf(two_levels_from)) return direct;
  const NodeGrid grid = node_grid(mesh, axes, ranks_per_node);
  if (!grid.several()) return direct;
  const double levels =
      grid.share_between() / network.bytes_per_second + (1 - grid.share_between()) / node.bytes_per_second;
  return std::min(direct, levels);
}

CostModel cost_model(Device device, DType type, int ranks_per_node, bool tf32) {
  CostModel model;
  if (device != Device::kCuda) return model;
  // Of a call or a kernel, however small, from where it is issued to its end; a call's message takes more.
  constexpr double kLaunch = 1e-5;
  model.flops_per_second = type == DType::kBfloat16 ? 4.5e14 : tf32 ? 2.5e14 : 5e13;
  model.memory_bytes_per_second = 2.7e12;
  model.network = {4.5e10, kLaunch + 1e-5};
  model.node = {3.5e11, kLaunch + 5e-6};
  model.ranks_per_node = ranks_per_node;
  model.two_levels_from = kTwoLevelsFrom;
  model.element_bytes = static_cast<double>(size_of(type));
  model.part_seconds = 2 * kLaunch;  // its message, and what puts it in its place
  model.product_seconds = kLaunch;
  return model;
}

double TransferCost::total_bytes() const {
  double total = 0;
  for (const double b : bytes) total += b;
  return total;
}

double TransferCost::seconds(const Link& link) const {
  return messages * link.latency_seconds + total_bytes() / link.bytes_per_second;
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

TransferCost step_cost(const MeshShape& mesh, const Step& step, const Layout& now, double element_bytes,
                       SentElements* known) {
  double ranks = 1;
  for (int axis = 0; axis < mesh.axes; ++axis) {
    if (contains(step.axes, axis)) ranks *= mesh.size[static_cast<std::size_t>(axis)];
  }
  const auto elements = static_cast<double>(now.largest_piece(mesh).count());
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
      sent =
          static_cast<double>(known != nullptr ? known->most(step, now) : SentElements(mesh).most(step, now));
      break;
    default:
      break;
  }
  TransferCost cost;
  cost.bytes[static_cast<std::size_t>(step.kind)] = sent * element_bytes;
  if (step.kind != Collective::kBroadcast) cost.messages = 1;
  return cost;
}

/// Calls `use` with each step and what it sends.
template <typename Use>
void for_each_step(const MeshShape& mesh, const Layout& from, const Layout& to, double element_bytes,
                   SentElements* known, const Use& use) {
  if (from == to) return;
  const Layout* now = &from;
  const Steps steps = redistribution_steps(mesh, from, to);
  for (const Step& step : steps) {
    use(step, step_cost(mesh, step, *now, element_bytes, known));
    now = &step.to;
  }
}

}  // namespace

TransferCost transfer_cost(const MeshShape& mesh, const Layout& from, const Layout& to,
                           double element_bytes) {
  TransferCost sum;
  for_each_step(mesh, from, to, element_bytes, nullptr,
                [&](const Step&, const TransferCost& cost) { sum += cost; });
  return sum;
}

double transfer_seconds(const MeshShape& mesh, const Layout& from, const Layout& to, const CostModel& model,
                        SentElements* sent) {
  double seconds = 0;
  for_each_step(mesh, from, to, model.element_bytes, sent, [&](const Step& step, const TransferCost& cost) {
    seconds += model.seconds(mesh, step.axes, cost);
  });
  return seconds;
}

}  // namespace jigsaw::inline parallel
