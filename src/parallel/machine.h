#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <limits>

#include "parallel/cost.h"
#include "parallel/sharded_tensor.h"

namespace jigsaw::inline parallel {

/// What each rank of a run does, all at once; equal on all ranks.
struct Machine {
  double flops_per_second = 0;
  double memory_bytes_per_second = 0;
  std::array<Link, kMaxAxes> links{};  ///< by mesh axis; those of one rank are not used
  Link node{};                         ///< between ranks of a node, where several share one
  int ranks_per_node = 1;              ///< as far as known
  double two_levels_from = std::numeric_limits<double>::infinity();  ///< see CostModel

  /// The constants of transfers along these axes: the network is the slowest of their links, and so are
  /// nodes where nothing is known of them. Takes what was not measured from `model`.
  CostModel along(const MeshShape& mesh, AxisSet axes, const CostModel& model) const;
  bool operator==(const Machine&) const = default;
};

/// Measures products of a type, memory, and messages along each axis of more than one rank, for some tenths
/// of a second: the fastest of several tries of the slowest rank. A GPU, which begins small work no faster
/// than large, is given up to as much as takes it 2 ms. Collective over the mesh; contexts with memory only.
Machine measure_machine(const Rank& rank, DType products = DType::kFloat32);

/// Floating-point operations per second of products of square matrices of a type, in the same way.
/// @param side  of the matrices, on a GPU the least one.
double products_per_second(const Rank& rank, DType type, std::int64_t side);
/// Seconds of the fastest of several tries of work, on the rank where that is slowest; the host waits for a
/// device. Collective.
double seconds_of(const Rank& rank, int tries, const std::function<void()>& work);

}  // namespace jigsaw::inline parallel
