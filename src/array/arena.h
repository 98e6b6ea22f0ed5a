#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "array/heap.h"
#include "array/memory_ranges.h"

namespace jigsaw::inline array {

/// Where arrays live. `kMeta` arrays have a shape and no memory.
enum class Device : std::uint8_t { kCpu, kCuda, kMeta, kSimulated };

/// What memory is used for; the arena counts each apart.
enum class Purpose : std::uint8_t { kParameters, kGradients, kOptimizer, kActivations, kWorkspace, kInput };
inline constexpr int kPurposes = 6;
const char* name(Purpose purpose);

/// Memory of an arena that some work has used: such work may be recorded with its addresses, and run again.
struct MemoryUse {
  MemoryRanges large, small;

  void add(const MemoryUse& other) {
    large.add(other.large);
    small.add(other.small);
  }
  bool operator==(const MemoryUse&) const = default;
};

/// Allocates, reuses and counts one rank's memory, so that peaks are known to the byte and
/// fresh pages are not paid for every step. Thread-safe. An arena of `kMeta` only counts.
class Arena : public std::enable_shared_from_this<Arena> {
 public:
  /// @param small  for small arrays, where regions of one source would stand between those of the other;
  ///               null: they come out of the same.
  Arena(Device device, std::unique_ptr<MemorySource> source, std::unique_ptr<MemorySource> small = nullptr);
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
  /// "arrays hold 2.1 GiB activations (at most 3 GiB before), …", and what needs less: for errors.
  std::string uses_text() const;
  /// What the arena took from the device, used or not; it keeps that until it ends.
  std::int64_t held_bytes() const;
  /// Highest total over all purposes at one moment.
  std::int64_t peak_bytes() const;
  /// Peaks start again from what is in use now.
  void reset_peaks();

  /// Notes which memory is given from now on.
  void note_use();
  /// What was given since; ends it.
  MemoryUse noted_use();
  /// Keeps memory for recorded work, in place of what was set aside before: what is free of it at once, the
  /// rest when arrays let go of it. Nothing: all is let go. @return  whether all of it is free.
  bool set_aside(const MemoryUse& use);
  /// From now on until the next set_aside(), others may be given all that is set aside, before the arena
  /// takes more from its device.
  void lend();

 private:
  /// Small arrays live apart, so that they do not break up the room of large ones.
  Heap& heap_of(std::int64_t bytes);
  void give_back(std::byte* memory, std::int64_t bytes, Purpose purpose) noexcept;

  Device device_;
  std::unique_ptr<MemorySource> source_, small_source_;
  mutable std::mutex mutex_;
  std::unique_ptr<Heap> large_, small_;  // null on meta
  MemoryUse noted_;
  bool lends_ = false;
  std::array<std::int64_t, kPurposes> current_{};
  std::array<std::int64_t, kPurposes> peak_{};
  std::int64_t total_ = 0;
  std::int64_t total_peak_ = 0;
};

}  // namespace jigsaw::inline array
