#pragma once
#include <vector>

namespace jigsaw::inline comm {

/// A group whose ranks lie on several nodes, as many on each, and more than one: rank k · local + j is number
/// j of node k. Any other is one node of one rank.
struct NodeGrid {
  int nodes = 1, local = 1;

  bool several() const { return nodes > 1 && local > 1; }
  double ranks() const { return static_cast<double>(nodes) * local; }
  /// Of what each rank sends when pieces are reduced or gathered in two levels: the share that leaves its
  /// node, (N − 1) / (n − 1), the least that is possible.
  double share_between() const { return (nodes - 1) / (ranks() - 1); }
  /// The bytes that it then sends less out of its node, of `bytes` in all.
  double bytes_kept_within(double bytes) const { return (local - 1) * share_between() * bytes; }
  bool operator==(const NodeGrid&) const = default;
};

/// @param ranks           of a group in its order, as numbers in the whole job.
/// @param ranks_per_node  so many consecutive ones of the job share a node; 0 or 1: nobody knows.
NodeGrid node_grid(const std::vector<int>& ranks, int ranks_per_node);

/// Where two levels keep as many bytes within nodes they pay: a second round of messages and the kernel
/// between the two take some 20 µs, in which a network's link moves a MiB.
inline constexpr double kTwoLevelsFrom = 1 << 20;

}  // namespace jigsaw::inline comm
