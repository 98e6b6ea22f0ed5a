#pragma once
#include <array>

#include "parallel/redistribute.h"
#include "parallel/rule.h"

namespace jigsaw {

/// Constants of a rank by which plans are compared, equal on all ranks: those of a socket in a cluster, two
/// of which share a link of 100 Gb/s. Where memory is that much faster than the network, the fastest plan
/// sends hardly more than the least possible (docs/traffic.md).
struct CostModel {
  double flops_per_second = 2e12;
  double memory_bytes_per_second = 2e11;
  double network_bytes_per_second = 6e9;
  double latency_seconds = 1e-5;
  double element_bytes = 4;
};

/// Bytes sent per kind of collective by the busiest rank.
struct TransferCost {
  std::array<double, kCollectives> bytes{};
  int messages = 0;

  double total_bytes() const;
  double seconds(const CostModel& model) const;
  TransferCost& operator+=(const TransferCost& other);
};

/// What rows with an algorithm of their own send, forward and backward.
/// @param first, last  the operation's first and last input as the rows take them.
/// @param rows         by axis; null where there is none.
TransferCost own_cost(const MeshShape& mesh, const Layout& first, const Layout& last,
                      const std::array<const Row*, kMaxAxes>& rows, double element_bytes);

/// What a redistribution sends.
TransferCost transfer_cost(const MeshShape& mesh, const Layout& from, const Layout& to, double element_bytes);

}  // namespace jigsaw
