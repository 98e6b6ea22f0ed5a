#pragma once
#include <cstddef>
#include <memory>

namespace jigsaw::inline array {

/// Raw memory of a device, in large regions that live as long as their source.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  /// A region of `bytes` (a multiple of 2 MiB, or where they stand apart any number), aligned to 256 bytes.
  /// @throws OutOfMemoryError when there is none; Error when a device has failed.
  virtual std::byte* allocate(std::size_t bytes) = 0;
  /// Bytes that it could still give; 0 where that is not known.
  virtual std::size_t left() const { return 0; }
  /// Whether a region that begins where another ends may be used as one with it.
  virtual bool joins() const = 0;
  /// Whether each array is to have a region of its own, exactly as large as it is, which given_back() frees:
  /// for tools that look for what is read or written beyond an array.
  virtual bool apart() const { return false; }
  /// Part of a region is no longer used; it may be given out again.
  virtual void given_back(std::byte* /*memory*/, std::size_t /*bytes*/) noexcept {}
};

/// Host memory: address space is reserved far ahead, so that regions lie one behind the other; pages are
/// huge where the system has them.
std::unique_ptr<MemorySource> make_host_memory();

}  // namespace jigsaw::inline array
