#pragma once
#include <algorithm>
#include <span>

#include "array/box.h"

namespace jigsaw::inline kernels::cpu {

/// A copy between two regions of equal extents as rows that are contiguous on both sides, the longest cut
/// into parts, so that threads can share them.
class BoxRows {
 public:
  BoxRows(const Shape& source, const Box& from, const Shape& target, const Box& to) {
    int dim = from.extent.rank();
    length_ = 1;
    for (bool whole = true; dim > 0 && whole; --dim) {
      length_ *= from.extent[dim - 1];
      whole = from.extent[dim - 1] == source[dim - 1] && from.extent[dim - 1] == target[dim - 1];
    }
    outer_ = Shape(std::span(from.extent.begin(), static_cast<std::size_t>(dim)));
    source_strides_ = source.strides();
    target_strides_ = target.strides();
    for (int d = 0; d < from.extent.rank(); ++d) {
      source_first_ += from.begin[d] * source_strides_[d];
      target_first_ += to.begin[d] * target_strides_[d];
    }
  }

  /// Number of parts of rows, and a bound of their length.
  std::int64_t parts() const { return outer_.count() * parts_per_row(); }
  std::int64_t part_length() const { return std::min(length_, kLongest); }

  struct Part {
    std::int64_t source, target, length;  ///< first element in each array, and how many
  };
  Part part(std::int64_t index) const {
    const std::int64_t within = index % parts_per_row() * kLongest;
    std::int64_t row = index / parts_per_row();
    Part part = {source_first_ + within, target_first_ + within, std::min(kLongest, length_ - within)};
    for (int dim = outer_.rank() - 1; dim >= 0; --dim) {
      part.source += row % outer_[dim] * source_strides_[dim];
      part.target += row % outer_[dim] * target_strides_[dim];
      row /= outer_[dim];
    }
    return part;
  }

 private:
  static constexpr std::int64_t kLongest = 1 << 16;
  std::int64_t parts_per_row() const { return (length_ + kLongest - 1) / kLongest; }

  Shape outer_, source_strides_, target_strides_;
  std::int64_t length_ = 1, source_first_ = 0, target_first_ = 0;
};

}  // namespace jigsaw::inline kernels::cpu
