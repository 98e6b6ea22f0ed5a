#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "array/heap.h"

namespace jigsaw::inline array {

/// Where arrays live. `kMeta` arrays have a shape and no memory.
enum class Device : std::uint8_t { kCpu, kCuda, kMeta, kSimulated };

/// What memory is used for; the arena counts each apart.
enum class Purpose : std::uint8_t { kParameters, kGradients, kOptimizer, kActivations, kWorkspace, kInput };
inline constexpr int kPurposes = 6;
const char* name(Purpose purpose);

/// Allocates, reuses and counts one rank's memory, so that peaks are known to the byte and
/// fresh pages are not paid for every step. Thread-safe. An arena of `kMeta` only counts.
class Arena : public std::enable_shared_from_this<Arena> {
 public:
  Arena(Device device, std::unique_ptr<MemorySource> source);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  static std::shared_ptr<Arena> make_host();
  static std::shared_ptr<Arena> make_meta();

  Device device() const { return device_; }

  /// Memory that goes back to the arena with its last owner; contents are arbitrary.
  /// On meta the pointer owns the count only and must not be read.
  std::shared_ptr<std::byte> allocate(std::int64_t bytes, Purpose purpose);

  std::int64_t current_bytes(Purpose purpose) const;
  std::int64_t peak_bytes(Purpose purpose) const;
  /// What the arena took from the device, used or not; it keeps that until it ends.
  std::int64_t held_bytes() const;
  /// Highest total over all purposes at one moment.
  std::int64_t peak_bytes() const;
  /// Peaks start again from what is in use now.
  void reset_peaks();

 private:
  /// Small arrays live apart, so that they do not break up the room of large ones.
  Heap& heap_of(std::int64_t bytes);
  void give_back(std::byte* memory, std::int64_t bytes, Purpose purpose) noexcept;

  Device device_;
  std::unique_ptr<MemorySource> source_;
  mutable std::mutex mutex_;
  std::unique_ptr<Heap> large_, small_;  // null on meta
  std::array<std::int64_t, kPurposes> current_{};
  std::array<std::int64_t, kPurposes> peak_{};
  std::int64_t total_ = 0;
  std::int64_t total_peak_ = 0;
};

}  // namespace jigsaw::inline array
