#pragma once
#include <cstddef>
#include <memory>
#include <span>

namespace jigsaw::inline files {

/// Memory that is used again: it grows as it must, its bytes are not set.
class ByteBuffer {
 public:
  std::span<std::byte> take(std::size_t bytes) {
    if (bytes > capacity_) {
      memory_ = nullptr;
      memory_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
      capacity_ = bytes;
    }
    return {memory_.get(), bytes};
  }

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::size_t capacity_ = 0;
};

}  // namespace jigsaw::inline files
