#pragma once
#include <array>
#include <memory>

#include "comm/call.h"

namespace jigsaw::inline parallel {

struct Machine;

/// Constants of a rank by which plans are compared, equal on all ranks: those of a socket in a cluster, two
/// of which share a link of 100 Gb/s. Where memory is that much faster than the network, the fastest plan
/// sends hardly more than the least possible (docs/traffic.md).
struct CostModel {
  double flops_per_second = 2e12;
  double memory_bytes_per_second = 2e11;
  double network_bytes_per_second = 6e9;
  double latency_seconds = 1e-5;
  double element_bytes = 4;
  /// What the ranks were seen to do, if that was measured, which no run sees twice alike: it decides how much
  /// of what is streamed goes into one message, and nothing that changes a result.
  std::shared_ptr<const Machine> measured = {};
};

/// Bytes sent per kind of collective by the busiest rank.
struct TransferCost {
  std::array<double, kCollectives> bytes{};
  int messages = 0;

  double total_bytes() const;
  double seconds(const CostModel& model) const;
  TransferCost& operator+=(const TransferCost& other);
  /// More bytes of one kind; where there are none, no messages either.
  void add(Collective kind, double more, double in_messages);
};

}  // namespace jigsaw::inline parallel
