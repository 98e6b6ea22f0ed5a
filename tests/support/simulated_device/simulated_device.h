#pragma once
#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "array/context.h"

namespace jigsaw::testing {

/// A device on a machine without one, on which code that forgets that the host is not the device fails:
///
/// - its memory cannot be read or written by the program (the pages have no rights); kernels see the same
///   memory at other addresses;
/// - new memory and what was given back holds NaN;
/// - work runs as late as it can: when somebody waits for its stream, and only that stream's, and what its
///   tickets name.
///
/// Kernels are those of a host backend and run in the thread that waits.
class SimulatedDevice : public HostKernelRuntime {
 public:
  /// A context on a device of its own.
  /// @param kernels  kReference or kCpu.
  static Context make_context(Backend kernels, int threads);
  /// The device in whose memory the address lies; null when there is none.
  static std::shared_ptr<SimulatedDevice> holding(const void* address);

  ~SimulatedDevice() override;
  SimulatedDevice(const SimulatedDevice&) = delete;
  SimulatedDevice& operator=(const SimulatedDevice&) = delete;

  void upload(Stream stream, std::span<const std::byte> from, std::byte* to, int threads) override;
  void download(Stream stream, const std::byte* from, std::span<std::byte> to) override;
  void start_download(Stream stream, const std::byte* from, std::span<std::byte> to) override;
  std::shared_ptr<Arena> page_locked() override { return page_locked_; }
  void copy(Stream stream, const std::byte* from, std::byte* to, std::size_t bytes) override;
  Ticket ticket(Stream stream) override;
  void wait(Stream stream, const Ticket& ticket) override;
  void synchronise(Stream stream) override;
  void synchronise(const Ticket& ticket) override;
  Milestone milestone(Stream stream) override;
  std::int64_t mark(Stream stream) override;
  std::vector<std::int64_t> passed() override;
  void launch(Stream stream, std::function<void(Context& host)> kernel) override;
  std::byte* seen_by_kernels(std::byte* address) override;

  /// Where arrays are copied to that tests look at.
  Context& host() { return host_; }
  /// Work that was put into the stream and has not run.
  std::int64_t waiting(Stream stream) const;
  /// How often the program waited so far for a stream: for what it read, or for nothing but the work.
  std::int64_t host_waits() const;
  /// How often it wrote numbers of the host, for which a device may let it wait, too.
  std::int64_t uploads() const;
  /// How many kernels it put into streams so far.
  std::int64_t launches() const;

 private:
  class Memory;
  struct Queue {
    std::deque<std::function<void()>> work;
    std::int64_t put = 0, done = 0;
  };

  SimulatedDevice(Backend kernels, int threads);
  std::byte* seen_by_kernels(const std::byte* address) const;
  void put(Stream stream, std::function<void()> work);
  void run(Stream stream, std::int64_t until);
  void forget_contents(std::byte* memory, std::size_t bytes);

  mutable std::recursive_mutex mutex_;
  std::array<Queue, kStreams> queues_;
  Context kernels_, host_;
  std::byte *program_ = nullptr, *kernel_ = nullptr;  ///< the same memory at two addresses
  std::shared_ptr<Arena> page_locked_ = Arena::make_host();
  std::size_t given_ = 0;
  std::int64_t host_waits_ = 0, uploads_ = 0, launches_ = 0;
  std::shared_ptr<std::vector<std::int64_t>> marks_ = std::make_shared<std::vector<std::int64_t>>();
};

}  // namespace jigsaw::testing
