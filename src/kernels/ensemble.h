#pragma once
#include <algorithm>
#include <vector>

#include "array/array.h"
#include "array/box.h"
#include "array/random.h"

namespace jigsaw::inline kernels {

// What the members of an ensemble start from: the same fields, and channels of random numbers by which they
// differ.

/// Standard normal numbers behind the channels of data. Those of member m of a sample are at the sample's
/// position, m samples on; of a global point p and channel c they are elements p·local + c, and, where they
/// are the same at all points, (points of the field)·local + c.
struct MemberNoise {
  RandomStream stream;
  std::int64_t local = 0;                 ///< channels that differ from point to point
  std::int64_t global = 0;                ///< channels that are the same at all points, behind those
  std::vector<RandomPosition> positions;  ///< of each sample; empty: all numbers are 0

  std::int64_t channels() const { return local + global; }
};

/// The part of the inputs of members, [B·members, space…, C], that a rank holds: member 0 of the first
/// sample, then its member 1, …
struct MemberBox {
  Shape whole;
  Box box;
  std::int64_t members = 1;

  /// The samples that it takes something of: [first_sample, first_sample + samples).
  std::int64_t first_sample() const { return box.begin[0] / members; }
  std::int64_t samples() const {
    return box.extent[0] == 0 ? 0 : (box.end(0) + members - 1) / members - first_sample();
  }
  /// How many of its channels lie before global channel `end`.
  std::int64_t channels_below(std::int64_t end) const {
    const int last = box.extent.rank() - 1;
    return std::clamp<std::int64_t>(end - box.begin[last], 0, box.extent[last]);
  }
};

/// The part of the inputs of members: each sample's fields as often as it has members, and noise behind them.
///
/// @param fields  [samples, points…, channels] of data in `of`, of any float type; undefined: zeros.
/// @param dtype   of the result.
/// @param noise   behind the data, in the last channels of `of.whole`; one position for each sample, or none.
/// @throws ShapeError  when the fields do not fit.
Array member_inputs(Context& context, const Array& fields, DType dtype, const MemberBox& of,
                    const MemberNoise& noise);

}  // namespace jigsaw::inline kernels
