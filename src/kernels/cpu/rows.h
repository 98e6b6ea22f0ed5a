#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace jigsaw::inline kernels::cpu {

/// A sample [points, c] seen as rows of `fold` points, `width` elements, so that rows of few channels fill
/// vector registers; the last row may be shorter.
struct Rows {
  Rows(std::int64_t points_, std::int64_t channels_)
      : points(points_),
        channels(channels_),
        fold(std::max<std::int64_t>(1, kWide / std::max<std::int64_t>(channels_, 1))),
        width(fold * channels_) {}

  std::int64_t count() const { return (points + fold - 1) / fold; }
  /// Elements of a row.
  std::int64_t length(std::int64_t row) const { return std::min(width, (points - row * fold) * channels); }
  /// Numbers per channel, over and over for the elements of a row.
  template <typename T>
  std::vector<T> repeated(const T* numbers) const {
    std::vector<T> all(static_cast<std::size_t>(width));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = numbers[i % static_cast<std::size_t>(channels)];
    return all;
  }

  static constexpr std::int64_t kWide = 64;
  std::int64_t points, channels, fold, width;
};

}  // namespace jigsaw::inline kernels::cpu
