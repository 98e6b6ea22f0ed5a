#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "array/array.h"
#include "array/device_runtime.h"

namespace jigsaw::inline comm {

/// Kinds of collective, as counted in summary.json; control values are counted apart.
enum class Collective : std::uint8_t {
  kAllGather,
  kReduceScatter,
  kAllReduce,
  kAllToAll,
  kBroadcast,
  kExchange,
  kControl
};
inline constexpr int kCollectives = 6;  ///< those of the model's data
inline constexpr int kKinds = 7;        ///< with control
const char* name(Collective kind);

enum class ReduceOp : std::uint8_t { kSum, kMax, kMin };

/// Whether the result is needed soon. Where the transport can, urgent calls overtake background ones.
enum class Urgency : std::uint8_t { kUrgent, kBackground };

/// What a control call does: numbers of all to all, texts to one, texts from one, one text to all.
enum class Control : std::uint8_t { kReduce, kGather, kScatter, kBroadcast };
const char* name(Control control);

/// A message to, or expected from, one rank: `count` elements.
struct Message {
  int peer = 0;
  std::int64_t first = 0;  ///< first element in the packed send or receive array
  std::int64_t count = 0;
};

/// The moment when a device has done all that one of its streams holds now: a transport may then use the
/// memory.
class Arrival {
 public:
  /// The host waits here where the device cannot count.
  Arrival(DeviceRuntime& runtime, Stream stream)
      : runtime_(&runtime), milestone_(runtime.milestone(stream)), ticket_(runtime.ticket(stream)) {
    if (!milestone_.counted()) runtime.synchronise(ticket_);
  }

  bool here() const { return milestone_.passed(); }
  /// @throws what the device has to say of work before it.
  void wait() const {
    if (!here()) runtime_->synchronise(ticket_);
  }

 private:
  DeviceRuntime* runtime_;
  Milestone milestone_;  ///< polled without calling the device's library
  DeviceRuntime::Ticket ticket_;
};

/// One checked call, as the front hands it to a backend. Which fields count depends on the kind.
struct Call {
  Collective kind = Collective::kControl;
  ReduceOp op = ReduceOp::kSum;
  int root = 0;
  Array send;
  /// When `send` is filled, if a device still writes it; only for backends whose Reach allows that.
  std::optional<Arrival> arrival;
  Shape result_shape;
  Purpose result_purpose = Purpose::kActivations;
  /// Elements by rank: pieces (all_gather, reduce_scatter) or what goes to each (all_to_all).
  std::vector<std::int64_t> counts;
  std::vector<std::int64_t> receive_counts;
  /// Of an all_to_all that forwards: elements of what any rank sends any other, at most; else 0.
  std::int64_t block = 0;
  std::vector<Message> sends;
  std::vector<Message> receives;
  Control control = Control::kReduce;
  std::vector<double> values;      ///< of Control::kReduce
  std::vector<std::string> texts;  ///< of the others: of kScatter one per rank, at the root; else one
  Urgency urgency = Urgency::kUrgent;
  std::int64_t sequence = 0;  ///< number of this call in its group
  std::int64_t number = 0;    ///< over all groups of the rank
  double sent_bytes = 0;      ///< by closed form

  /// A count that is the same on all ranks of the group; 0 where there is none.
  std::int64_t global_count() const;
  /// "all_gather #17 of 4096 fp32".
  std::string describe() const;
};

/// The sums of all counts before each: where each rank's piece begins.
std::vector<std::int64_t> offsets(const std::vector<std::int64_t>& counts);

}  // namespace jigsaw::inline comm
