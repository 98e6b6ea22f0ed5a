#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "array/device_runtime.h"
#include "comm/call.h"

namespace jigsaw::inline comm {

/// Of a call that stands in a stream of the rank's device, where wait() does not block the host.
struct OnDevice {
  Milestone begun, done;
};

/// The last calls of one rank on all its groups, and a fingerprint of all calls so far. Thread-safe, so
/// that a watchdog can read it while the rank hangs.
class CallLog {
 public:
  static constexpr std::int64_t kKept = 64;

  enum class State : std::uint8_t {
    kStarted,  ///< under way, while the rank does something else
    kWaiting,  ///< the rank hands it over, or waits for its result
    kQueued,   ///< stands in a stream of the device, which has not come to it
    kRunning,  ///< the device has come to it
    kDone
  };

  struct Entry {
    std::int64_t number = 0;   ///< over all groups of the rank
    std::int64_t ordinal = 0;  ///< of calls that were not forgotten: equal on all ranks
    std::string group;
    Collective kind = Collective::kControl;
    std::int64_t count = 0;     ///< elements this rank sends
    std::int64_t sequence = 0;  ///< within the group
    State state = State::kStarted;
    OnDevice device = {};  ///< of what was handed to it

    /// "all_gather #17 on tensor (4096 elements)".
    std::string describe() const;
  };

  /// Logs a call; the number names it from then on.
  std::int64_t begin(const std::string& group, bool whole_job, const Call& call);
  void set_state(std::int64_t number, State state);
  /// The device carries it from now on, and says when it is done.
  void set_on_device(std::int64_t number, const OnDevice& device);

  /// How far it has come.
  struct Mark {
    std::int64_t next = 0, made = 0;
    std::uint64_t hash = 0;
  };
  /// Calls from here on are kept for since_mark() until forget().
  Mark mark();
  /// As if none of the calls since had been made; their numbers are not given again.
  void forget(const Mark& since);

  /// Those that were handed to the device since the last mark.
  std::vector<Entry> since_mark() const;
  /// Calls that a device makes once more, with other milestones.
  void repeat(const std::vector<Entry>& calls);
  /// At most kKept entries, oldest first.
  std::vector<Entry> last() const;
  struct Position {
    /// "waits in …", "is outside communication, after …", or where a device has other work to do before a
    /// call "is outside communication: its device has not come to …". Of calls under way there it is the
    /// oldest.
    std::string text;
    std::int64_t ordinal = 0;  ///< of this call, or of the one that would be next
    bool arrived = false;      ///< in it, not before it
  };
  Position position() const;

  /// A hash of every call so far: number, group, kind, and for groups of the whole job (elsewhere pieces may
  /// be uneven across groups) the global element count. An integer below 2^53, exact as a double: ranks that
  /// made the same calls have the same one, so its minimum and maximum over ranks agree.
  double fingerprint() const;

 private:
  mutable std::mutex mutex_;
  static constexpr std::int64_t kForgotten = -1;  ///< in place of a call's number
  static constexpr std::int64_t kNothing = INT64_MAX;

  void drop_done();
  std::vector<Entry> last_calls() const;

  std::array<Entry, kKept> ring_;
  /// Not known to be done, or since the last mark: more than kKept where the host is far ahead.
  std::deque<Entry> on_device_;
  std::int64_t marked_ = kNothing;  ///< number
  std::int64_t next_ = 0;           ///< number
  std::int64_t made_ = 0;           ///< calls, but for those forgotten
  std::uint64_t hash_ = 0;
};

}  // namespace jigsaw::inline comm
