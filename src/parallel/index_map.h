#pragma once
#include <cstdint>
#include <vector>

#include "parallel/layout.h"

namespace jigsaw::inline parallel {

/// What lies beyond an end of a dim. Halos may be wider than the dim: coordinates are then sent on until they
/// fall inside.
enum class Edge : std::uint8_t {
  /// Nothing: the region that is read ends there; zeros where another edge leads there.
  kNone,
  kZero,       ///< zeros
  kReflect,    ///< mirrored at the last element: −1 is 1 (torch's "reflect")
  kReplicate,  ///< the last element (torch's "replicate")
  kPeriodic,   ///< the other end (torch's "circular")
  kPolePoint,  ///< across a pole that is the last row: row −k is row k, half the circle away
  kPoleCell    ///< across a pole half a row further: row −k is row k − 1, half the circle away
};
constexpr bool is_pole(Edge edge) {
  return edge == Edge::kPolePoint || edge == Edge::kPoleCell;
}

/// Which coordinates of the padded input the outputs of a dim read: output o reads from
/// ⌊(o · numerator + first) / denominator⌋ to ⌊(o · numerator + last) / denominator⌋, both included. This
/// expresses the stride, dilation and padding of a kernel and the scale of a resampling. Inputs and outputs
/// are both cut in units of 1, so that the load stays balanced.
struct Reads {
  std::int64_t numerator = 1, denominator = 1;
  std::int64_t first = 0, last = 0;

  /// What a range of outputs reads; may lie outside of the input.
  Range of(Range outputs) const;
  bool operator==(const Reads&) const = default;

  /// A convolution or a pooling.
  static Reads window(std::int64_t kernel, std::int64_t stride, std::int64_t dilation, std::int64_t padding);
  /// The transposed convolution.
  static Reads transposed(std::int64_t kernel, std::int64_t stride, std::int64_t dilation,
                          std::int64_t padding);
  /// Output o is input o + offset.
  static Reads shifted(std::int64_t offset) { return {1, 1, offset, offset}; }
};

/// A run of consecutive padded coordinates that read consecutive coordinates.
struct Run {
  std::int64_t to = 0, from = 0, count = 0;
  bool crossed = false;  ///< an odd number of poles lies between
  bool operator==(const Run&) const = default;
};

/// How one dim is read.
struct DimMap {
  int dim = 0;
  Reads reads;
  Edge low = Edge::kNone, high = Edge::kNone;

  /// What a range of outputs reads of a dim of this extent, without what Edge::kNone leaves out.
  Range region(Range outputs, std::int64_t extent) const;
  /// Where a range of padded coordinates reads; what reads zeros is in no run.
  /// @param half_turn  each coordinate inside is sent on to the other side of the circle.
  std::vector<Run> runs(Range padded, std::int64_t extent, bool half_turn) const;
  bool operator==(const DimMap&) const = default;
};

/// What crossing a pole does to the elements: x · factor + offset by global index of the last dim. A
/// component of a vector changes sign there; normalised, that is −x − 2 · mean / deviation. Empty: nothing.
struct PoleCrossing {
  std::vector<double> factor, offset;  ///< the offset is empty where it is zero

  bool operator==(const PoleCrossing&) const = default;
};

/// Sends each coordinate of a padded tensor to one of the tensor it is made of: dims that are not named are
/// taken as they are.
struct IndexMap {
  std::vector<DimMap> dims;
  /// The dim that goes around the circle, where another one crosses poles; among `dims`, of even extent.
  int circle = -1;
  PoleCrossing crossing;

  bool operator==(const IndexMap&) const = default;
};

}  // namespace jigsaw::inline parallel
