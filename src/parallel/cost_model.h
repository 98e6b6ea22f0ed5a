#pragma once
#include <array>
#include <limits>
#include <memory>

#include "array/arena.h"
#include "array/dtype.h"
#include "comm/call.h"
#include "comm/node_grid.h"
#include "parallel/layout.h"

namespace jigsaw::inline parallel {

struct Machine;
struct TransferCost;

/// One direction of what a rank sends while all do.
struct Link {
  double bytes_per_second = 0;
  double latency_seconds = 0;  ///< of each call
  bool operator==(const Link&) const = default;
};

/// Constants of a rank by which plans are compared, equal on all ranks: those of a socket in a cluster, two
/// of which share a link of 100 Gb/s. Where memory is that much faster than the network, the fastest plan
/// sends hardly more than the least possible (docs/traffic.md).
struct CostModel {
  double flops_per_second = 2e12;
  double memory_bytes_per_second = 2e11;
  Link network = {6e9, 1e-5};  ///< between nodes
  Link node = network;         ///< between ranks of a node; no slower
  int ranks_per_node = 1;      ///< consecutive ranks that share a node
  /// Groups on several nodes reduce and gather in two levels where as many bytes so stay within nodes.
  double two_levels_from = std::numeric_limits<double>::infinity();
  double element_bytes = 4;
  /// Of a product whose parts travel while the next ones are computed: seconds that each further part costs
  /// for its message and kernels, and the shortest time of any product.
  double part_seconds = 5e-5, product_seconds = 0;
  /// Measured rates, if any. They differ from run to run, so they decide only how many messages a streamed
  /// transfer takes, and nothing that changes a result.
  std::shared_ptr<const Machine> measured = {};

  /// What carries transfers between ranks that differ along these axes: the network unless all lie within a
  /// node.
  const Link& link(const MeshShape& mesh, AxisSet axes) const;
  /// What a transfer along these axes takes: by their link, but in two levels by that of nodes, too.
  double seconds(const MeshShape& mesh, AxisSet axes, const TransferCost& sent) const;
  /// What a byte of a large reduction or gather takes; no more than in any transfer.
  double seconds_per_byte(const MeshShape& mesh, AxisSet axes) const;
};

/// The constants of a class of devices: of processors those above, however many share a node, and of GPUs
/// attained rates of one like an H100 (NVLink within a node, InfiniBand of 400 Gb/s a GPU between nodes) in
/// products of this type.
///
/// @param tf32  whether products of float32 are formed of TensorFloat-32.
CostModel cost_model(Device device, DType type, int ranks_per_node, bool tf32 = false);

/// How many consecutive ranks along each axis share a node, of so many consecutive ranks each; 0 where nodes
/// do not part the axis evenly.
std::array<int, kMaxAxes> ranks_in_node(const MeshShape& mesh, int ranks_per_node);
/// The axes along which ranks lie within nodes; those of one rank always do.
AxisSet axes_within_nodes(const MeshShape& mesh, int ranks_per_node);
/// What node_grid() says of all groups of ranks that differ along these axes; that of one node where nodes do
/// not part an axis evenly.
NodeGrid node_grid(const MeshShape& mesh, AxisSet axes, int ranks_per_node);

/// Bytes sent per kind of collective by the busiest rank.
struct TransferCost {
  std::array<double, kCollectives> bytes{};
  int messages = 0;

  double total_bytes() const;
  double seconds(const Link& link) const;
  TransferCost& operator+=(const TransferCost& other);
  /// More bytes of one kind; where there are none, no messages either.
  void add(Collective kind, double more, double in_messages);
};

}  // namespace jigsaw::inline parallel
