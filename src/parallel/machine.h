#pragma once
#include <array>

#include "parallel/cost.h"
#include "parallel/sharded_tensor.h"

namespace jigsaw::inline parallel {

/// What each rank of a run does, all at once; equal on all ranks.
struct Machine {
  /// One direction of what a rank sends along a mesh axis while all do.
  struct Link {
    double bytes_per_second = 0;
    double latency_seconds = 0;
    bool operator==(const Link&) const = default;
  };

  double flops_per_second = 0;
  double memory_bytes_per_second = 0;
  std::array<Link, kMaxAxes> links{};  ///< by mesh axis; those of one rank are not used

  /// The constants of transfers along these axes: those of the slowest. Takes what was not measured from
  /// `model`.
  CostModel along(const MeshShape& mesh, AxisSet axes, const CostModel& model) const;
  bool operator==(const Machine&) const = default;
};

/// Measures products, memory, and messages along each axis of more than one rank, for some tenths of a
/// second: the fastest of several tries of the slowest rank. Collective over the mesh; contexts with memory
/// only.
Machine measure_machine(const Rank& rank);

}  // namespace jigsaw::inline parallel
