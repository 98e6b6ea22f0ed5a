#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace jigsaw::inline base {

/// What an event of a trace is about: its category in files, and what a profile adds up.
enum class TraceKind : std::uint8_t {
  kStep,       ///< a step of training
  kPhase,      ///< what a run does: forward, backward, update, validation, save, …
  kOperation,  ///< an operation of the tape, in forward or backward, or other work of kernels
  kStart,      ///< a collective is handed to the transport
  kWait,       ///< its result is waited for
  kControl,    ///< a control call, with its waiting
  kDataWait,   ///< the next batch, until the thread that trains has it
  kRead,       ///< a hyperslab of a file
  kTransfer,   ///< from start to result, whatever the thread does meanwhile; the only kind that does not nest
  kCarried,    ///< a collective, as a device carried it
};
const char* name(TraceKind kind);

struct TraceEvent {
  TraceKind kind = TraceKind::kPhase;
  std::string name;
  std::string layer = {};           ///< of operations the path of their block
  std::int64_t begin = 0, end = 0;  ///< nanoseconds of the steady clock
  double flops = 0, moved = 0;      ///< of operations: arithmetic, bytes through memory
  double bytes = 0;                 ///< sent (kStart) or read (kRead)
  std::int64_t number = -1;         ///< of a call, over all groups of the rank
  std::int64_t step = 0;            ///< of what a device did: that of training; 0 outside of it
};

/// Numbers at a moment, such as bytes by purpose.
struct TraceSample {
  static constexpr std::size_t kValues = 8;
  std::int64_t time = 0;
  std::int64_t values[kValues] = {};
};

/// The events of one rank, by thread. Thread-safe.
class EventTrace {
 public:
  /// Events of one thread after which no more are kept.
  static constexpr std::size_t kMostEvents = std::size_t{1} << 21;

  /// The events of one thread at a time, in the order in which they end.
  struct Lane {
    EventTrace* trace = nullptr;
    std::string name;
    bool busy = false;
    mutable std::mutex mutex;
    std::vector<TraceEvent> events;
  };

  bool recording() const { return recording_.load(std::memory_order_relaxed); }
  void record(bool on) { recording_.store(on, std::memory_order_relaxed); }
  /// What was recorded so far is forgotten.
  void clear();

  void add(Lane& lane, TraceEvent event);
  void add(const TraceSample& sample);
  /// Copies, by thread.
  std::vector<std::pair<std::string, std::vector<TraceEvent>>> events() const;
  std::vector<TraceSample> samples() const;
  std::int64_t dropped() const { return dropped_; }

  /// A lane of this name that no thread has.
  Lane* enter(const std::string& name);
  void leave(Lane* lane);

 private:
  std::atomic<bool> recording_ = false;
  std::atomic<std::int64_t> dropped_ = 0;
  mutable std::mutex mutex_;
  std::deque<Lane> lanes_;
  std::vector<TraceSample> samples_;
};

/// Of the calling thread; null where it is not traced.
extern constinit thread_local EventTrace::Lane* trace_lane;

/// While it lives, what the calling thread does is traced; null: it is not.
class TracesFor {
 public:
  TracesFor(std::shared_ptr<EventTrace> trace, const std::string& thread_name);
  ~TracesFor();
  TracesFor(const TracesFor&) = delete;
  TracesFor& operator=(const TracesFor&) = delete;

 private:
  std::shared_ptr<EventTrace> trace_;
  EventTrace::Lane* before_;
};

/// That of the calling thread, for those that it starts; may be null.
std::shared_ptr<EventTrace> current_trace();

/// Whether events of the calling thread are kept: a branch where nobody asked for a trace.
inline bool tracing() {
  return trace_lane != nullptr && trace_lane->trace->recording();
}
/// Nanoseconds of the clock of events.
std::int64_t trace_now();

/// An event that lasts as long as the value lives. Costs a branch where nothing is traced.
class TraceSpan {
 public:
  TraceSpan(TraceKind kind, std::string_view name) {
    if (tracing()) begin(kind, name);
  }
  ~TraceSpan() {
    if (event_) end();
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

  /// To be filled in; null where nothing is traced.
  TraceEvent* event() { return event_ ? &*event_ : nullptr; }

 private:
  void begin(TraceKind kind, std::string_view name);
  void end();

  std::optional<TraceEvent> event_;
};

/// Nothing of the calling thread is traced meanwhile.
class TracePause {
 public:
  TracePause() : lane_(trace_lane) { trace_lane = nullptr; }
  ~TracePause() { trace_lane = lane_; }
  TracePause(const TracePause&) = delete;
  TracePause& operator=(const TracePause&) = delete;

 private:
  EventTrace::Lane* lane_;
};

}  // namespace jigsaw::inline base
