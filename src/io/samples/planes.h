#pragma once
#include <cstdint>
#include <deque>
#include <span>

#include "files/byte_buffer.h"

namespace jigsaw::inline samples {

/// The values of a plane, in float where that holds them (Unpacking::exact_in_float), else in double.
class PlaneView {
 public:
  PlaneView() = default;
  PlaneView(std::span<const double> values) : doubles_(values.data()), size_(values.size()) {}
  PlaneView(std::span<const float> values) : floats_(values.data()), size_(values.size()) {}

  double operator[](std::size_t i) const {
    return floats_ != nullptr ? static_cast<double>(floats_[i]) : doubles_[i];
  }
  bool empty() const { return size_ == 0; }

 private:
  const float* floats_ = nullptr;
  const double* doubles_ = nullptr;
  std::size_t size_ = 0;
};

/// Memory of planes, kept from batch to batch: each fresh one would cost the system a page fault for every
/// 4 KiB.
class PlanePool {
 public:
  /// Its values are not set, and stay until give_back().
  template <typename T>
  std::span<T> take(std::int64_t count) {
    if (taken_ == buffers_.size()) buffers_.emplace_back();
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
    bytes_ += static_cast<std::int64_t>(bytes);
    return {reinterpret_cast<T*>(buffers_[taken_++].take(bytes).data()), static_cast<std::size_t>(count)};
  }
  void give_back() {
    taken_ = 0;
    bytes_ = 0;
  }
  /// Bytes taken now.
  std::int64_t bytes() const { return bytes_; }

 private:
  std::deque<ByteBuffer> buffers_;
  std::size_t taken_ = 0;
  std::int64_t bytes_ = 0;
};

}  // namespace jigsaw::inline samples
