#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace jigsaw::inline array {

class Arena;
class Context;

/// Queues of a device. What is put into one runs in order; what is put into two runs in any order, unless a
/// ticket says otherwise.
enum class Stream : std::uint8_t {
  kCompute,
  kCommunication,  ///< goes before the others where the device cannot do all at once
  kBackground,     ///< communication that nobody waits for yet; goes before computation, for what is urgent
                   ///< begins after it, and it takes few multiprocessors
  kUpload,         ///< of batches
  kDownload        ///< of checkpoints
};
inline constexpr int kStreams = 5;

/// A place in a stream of which any thread can ask whether the stream has come there, also while the device
/// hangs or after it has failed: the stream itself counts on the host.
class Milestone {
 public:
  /// One that has been passed.
  Milestone() = default;
  /// @param count  of milestones passed, modulo 2^32.
  Milestone(std::shared_ptr<std::uint32_t> count, std::uint32_t number)
      : count_(std::move(count)), number_(number) {}

  /// Whether a stream counts it.
  bool counted() const { return count_ != nullptr; }
  bool passed() const {
    return count_ == nullptr ||
           static_cast<std::int32_t>(std::atomic_ref(*count_).load(std::memory_order_acquire) - number_) >= 0;
  }
  /// Of the same count, so many further on.
  Milestone later(std::uint32_t passed) const { return {count_, number_ + passed}; }
  bool counts_by(const std::shared_ptr<std::uint32_t>& count) const { return count_ == count; }

 private:
  std::shared_ptr<std::uint32_t> count_;
  std::uint32_t number_ = 0;
};

/// What the program asks of a device whose memory the host cannot read and whose work runs later. Addresses
/// are those of its arrays. A host context has none: its kernels have run when they return.
class DeviceRuntime {
 public:
  /// A place in a stream: after all that was put into it before.
  struct Ticket {
    Stream stream = Stream::kCompute;
    std::int64_t number = 0;
    std::int64_t recording = 0;  ///< in which it was taken; 0: in none
  };

  /// Work that was recorded: what was put into the streams, with the addresses of its arrays.
  class Recording {
   public:
    Recording() = default;
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;
    virtual ~Recording() = default;
  };
  /// How often the host has done what recorded work must not contain: waited for the device (or started a
  /// download, for which it will wait), and uploaded.
  struct HostSteps {
    std::int64_t waits = 0, uploads = 0;
    bool operator==(const HostSteps&) const = default;
  };

  virtual ~DeviceRuntime() = default;

  /// Makes the device the current one for libraries that this thread calls, unless it has failed.
  virtual void choose_for_this_thread() {}

  /// Returns when `from` may be written again.
  /// @param threads  of the host, which may copy at the same time.
  virtual void upload(Stream stream, std::span<const std::byte> from, std::byte* to, int threads) = 0;
  /// Returns when `to` is filled: waits for the stream.
  virtual void download(Stream stream, const std::byte* from, std::span<std::byte> to) = 0;
  /// Fills `to`, memory of page_locked(), when its turn in the stream comes.
  virtual void start_download(Stream stream, const std::byte* from, std::span<std::byte> to) = 0;
  /// Host memory that the device reaches by itself. Where the host gives no more, an allocation throws Error.
  virtual std::shared_ptr<Arena> page_locked() = 0;
  /// Within the device.
  virtual void copy(Stream stream, const std::byte* from, std::byte* to, std::size_t bytes) = 0;

  virtual Ticket ticket(Stream stream) = 0;
  /// What is put into `stream` from now on runs after what the ticket stands for. The host does not wait.
  virtual void wait(Stream stream, const Ticket& ticket) = 0;
  /// The host waits for all that was put into the stream.
  virtual void synchronise(Stream stream) = 0;
  /// The host waits for what the ticket stands for.
  virtual void synchronise(const Ticket& ticket) = 0;
  /// A milestone behind all that was put into the stream before; passed from the start where the device
  /// cannot count.
  virtual Milestone milestone(Stream stream) = 0;
  /// Seconds that the stream for computation stood still in wait() for those for communication, since the
  /// last call and as far as it has come.
  virtual double take_stalled_seconds() { return 0; }

  /// A place in the stream for computation at which the device notes the time; the last eight are kept.
  virtual std::int64_t instant() { return 0; }
  /// From one instant to a later one, which the stream has passed; 0 where the device knows no time.
  virtual double seconds_between(std::int64_t /*first*/, std::int64_t /*later*/) const { return 0; }

  /// Marks a place in the stream: passed() tells when the device had done all before it. @return  its number
  /// since the last passed(), from 0 on.
  virtual std::int64_t mark(Stream stream) = 0;
  /// When the device came to the marks since the last call, as trace_now() counts. The host waits for it.
  virtual std::vector<std::int64_t> passed() = 0;

  /// Whether work can be recorded, and run again without the host that put it in.
  virtual bool records() const { return false; }
  virtual HostSteps host_steps() const { return {}; }
  /// From now on what is put into the streams for computation and communication is recorded and does not run;
  /// it comes behind what stands in them. Between the two nothing goes up or down, and the host waits for
  /// nothing.
  virtual void begin_recording() {}
  virtual std::shared_ptr<Recording> end_recording() { return nullptr; }
  /// Ends a recording that failed: nothing of it runs, and what is put in from now on does.
  virtual void drop_recording() noexcept {}
  /// Puts recorded work into the stream for computation. The first time nothing else has been put in since
  /// end_recording().
  virtual void replay(Recording& /*recording*/) {}
  /// The milestone of the last replay that corresponds to `milestone`, which was set while the work was
  /// recorded and is that of its first replay.
  virtual Milestone again(const Milestone& milestone, const Recording& /*recording*/) const {
    return milestone;
  }
};

/// A device whose kernels are those of the host: they run later, in the order of their stream, and see its
/// memory at other addresses than the program does.
class HostKernelRuntime : public DeviceRuntime {
 public:
  /// `kernel` runs when its turn comes, with a context on the host.
  virtual void launch(Stream stream, std::function<void(Context& host)> kernel) = 0;
  /// Where kernels see the memory that the program knows at an address.
  virtual std::byte* seen_by_kernels(std::byte* address) = 0;
};

}  // namespace jigsaw::inline array
