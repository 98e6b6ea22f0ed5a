#include "array/shape.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline array {

Shape::Shape(std::initializer_list<std::int64_t> extents)
    : Shape(std::span<const std::int64_t>(extents.begin(), extents.size())) {}

Shape::Shape(std::span<const std::int64_t> extents) {
  for (const std::int64_t extent : extents) append(extent);
}

Shape Shape::filled(int rank, std::int64_t value) {
  Shape shape;
  for (int dim = 0; dim < rank; ++dim) shape.append(value);
  return shape;
}

void Shape::append(std::int64_t extent) {
  if (rank_ == kMaxRank) throw ShapeError(concat("arrays have at most ", kMaxRank, " dimensions"));
  if (extent < 0) throw ShapeError(concat("an extent cannot be negative: ", extent));
  extents_[rank_++] = extent;
}

std::int64_t Shape::count(int first, int last) const {
  std::int64_t product = 1;
  bool beyond = false;
  for (int dim = first; dim < last; ++dim) {
    if (extents_[dim] == 0) return 0;
    beyond = __builtin_mul_overflow(product, extents_[dim], &product) || beyond;
  }
  return beyond ? std::numeric_limits<std::int64_t>::max() : product;
}

Shape Shape::strides() const {
  Shape strides = *this;
  std::int64_t stride = 1;
  for (int dim = rank_ - 1; dim >= 0; --dim) {
    strides.extents_[dim] = stride;
    stride *= extents_[dim];
  }
  return strides;
}

bool Shape::operator==(const Shape& other) const {
  return std::equal(begin(), end(), other.begin(), other.end());
}

std::string Shape::to_string() const {
  return concat("[", join(std::span(begin(), static_cast<std::size_t>(rank_)), ", "), "]");
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  return out << shape.to_string();
}

}  // namespace jigsaw::inline array
