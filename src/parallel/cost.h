#pragma once
#include <array>

#include "parallel/redistribute.h"

namespace jigsaw {

/// Constants of the machine by which plans are compared. Equal on all ranks.
struct CostModel {
  double flops_per_second = 1e11;
  double memory_bytes_per_second = 1e10;
  double network_bytes_per_second = 5e9;
  double latency_seconds = 1e-5;
  double element_bytes = 4;
};

/// Bytes sent per kind of collective by the rank with the largest pieces.
struct TransferCost {
  std::array<double, kCollectives> bytes{};
  int messages = 0;

  double total_bytes() const;
  double seconds(const CostModel& model) const;
  TransferCost& operator+=(const TransferCost& other);
};

/// What a redistribution sends.
TransferCost transfer_cost(const MeshShape& mesh, const Layout& from, const Layout& to, double element_bytes);

}  // namespace jigsaw
