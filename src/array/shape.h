#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <span>
#include <string>

namespace jigsaw::inline array {

/// Extents of an array, outermost first. A value of at most kMaxRank numbers, without allocation.
class Shape {
 public:
  static constexpr int kMaxRank = 8;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents);
  explicit Shape(std::span<const std::int64_t> extents);
  /// `rank` extents of the same value.
  static Shape filled(int rank, std::int64_t value);

  int rank() const { return rank_; }
  std::int64_t operator[](int dim) const { return extents_[dim]; }
  std::int64_t& operator[](int dim) { return extents_[dim]; }
  std::int64_t back() const { return extents_[rank_ - 1]; }
  const std::int64_t* begin() const { return extents_.data(); }
  const std::int64_t* end() const { return extents_.data() + rank_; }

  /// Product of all extents; 1 for rank 0. A product of more than 2^63 - 1 is that number.
  std::int64_t count() const { return count(0, rank_); }
  /// Product of the extents of dims [first, last).
  std::int64_t count(int first, int last) const;
  /// Row-major element strides.
  Shape strides() const;
  void append(std::int64_t extent);

  bool operator==(const Shape& other) const;
  std::string to_string() const;

 private:
  std::array<std::int64_t, kMaxRank> extents_{};
  int rank_ = 0;
};

std::ostream& operator<<(std::ostream& out, const Shape& shape);

}  // namespace jigsaw::inline array
