#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace jigsaw::inline files {

/// XXH64 with seed 0 (xxhash.com) of bytes that come one after the other, as 16 hexadecimal digits.
class Digest {
 public:
  Digest();
  void add(std::span<const std::byte> bytes);
  std::string text() const;

 private:
  std::shared_ptr<void> state_;
};

std::string digest_of(std::span<const std::byte> bytes);
std::string digest_of_text(std::string_view text);

}  // namespace jigsaw::inline files
