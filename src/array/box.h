#pragma once
#include <string>
#include <vector>

#include "array/shape.h"

namespace jigsaw::inline array {

/// A rectangular region of an index space: `extent` elements from `begin` on, per dim.
/// Empty when an extent is zero.
struct Box {
  Shape begin;
  Shape extent;

  /// The whole of a shape.
  static Box whole(const Shape& shape) { return {Shape::filled(shape.rank(), 0), shape}; }

  std::int64_t end(int dim) const { return begin[dim] + extent[dim]; }
  bool empty() const { return extent.count() == 0; }
  bool operator==(const Box&) const = default;
  std::string to_string() const;
};

/// The region in both; all extents zero when there is none.
Box intersect(const Box& a, const Box& b);
/// `inner` in coordinates relative to `outer`'s begin.
Box relative_to(const Box& inner, const Box& outer);
/// `whole` less `inner`, which lies in it, in boxes.
std::vector<Box> around(const Box& whole, const Box& inner);
std::ostream& operator<<(std::ostream& out, const Box& box);

}  // namespace jigsaw::inline array
