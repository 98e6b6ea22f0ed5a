#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace jigsaw {

/// Where arrays live. `kMeta` arrays have a shape and no memory.
enum class Device : std::uint8_t { kCpu, kCuda, kMeta };

/// What memory is used for; the arena counts each apart.
enum class Purpose : std::uint8_t { kParameters, kGradients, kOptimizer, kActivations, kWorkspace, kInput };
inline constexpr int kPurposes = 6;
const char* name(Purpose purpose);

/// Raw device memory behind an arena.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  /// Memory aligned to 64 bytes, or to 2 MiB and advised to huge pages when large.
  /// Throws Error when there is none.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* memory, std::size_t bytes) noexcept = 0;
};
std::unique_ptr<MemorySource> make_host_memory();

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
  /// Highest total over all purposes at one moment.
  std::int64_t peak_bytes() const;
  /// Peaks start again from what is in use now.
  void reset_peaks();

 private:
  void give_back(std::byte* memory, std::int64_t bytes, Purpose purpose) noexcept;
  static std::size_t size_class(std::int64_t bytes);

  Device device_;
  std::unique_ptr<MemorySource> source_;
  mutable std::mutex mutex_;
  std::map<std::size_t, std::vector<std::byte*>> free_;
  std::array<std::int64_t, kPurposes> current_{};
  std::array<std::int64_t, kPurposes> peak_{};
  std::int64_t total_ = 0;
  std::int64_t total_peak_ = 0;
};

}  // namespace jigsaw
