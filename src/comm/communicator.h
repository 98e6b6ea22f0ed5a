#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "array/array.h"
#include "comm/call.h"
#include "comm/call_log.h"
#include "comm/levels.h"

namespace jigsaw::inline comm {

/// A collective under way. Owns what it sends and receives until it is waited for. Destroyed without being
/// waited for, it waits first, unless an exception is on its way.
class Pending {
 public:
  class Operation {
   public:
    virtual ~Operation() = default;
    /// Blocks until the result is there; called once.
    virtual Array wait() = 0;
    /// Lets the transfer progress; true when wait() would not block.
    virtual bool poll() = 0;
    /// Where a device carries it, and wait() blocks a stream of the device, not the host; else null.
    virtual const OnDevice* on_device() const { return nullptr; }
  };

  Pending() = default;
  explicit Pending(std::unique_ptr<Operation> operation) : operation_(std::move(operation)) {}

  bool valid() const { return operation_ != nullptr; }
  bool poll() { return operation_ == nullptr || operation_->poll(); }
  /// The result; the handle is empty afterwards.
  Array wait();

 private:
  std::unique_ptr<Operation> operation_;
};

/// Bytes sent so far, by closed form over n ranks: all_gather (n−1) × own piece; reduce_scatter whole −
/// own piece; all_reduce 2(n−1)/n × whole; all_to_all, exchange and broadcast (by the root): what goes to
/// others. Shared by a communicator and all that were split off it. Groups of one and calls in which
/// nothing travels for anyone do not count.
struct Traffic {
  std::array<double, kCollectives> sent_bytes{};
  std::array<std::int64_t, kCollectives> calls{};
  /// Time spent in start, poll and wait; of calls that a device carries, that in which it stood still for
  /// them, as far as the host has waited for it; not in work that a device replays.
  double seconds = 0;
  double total_bytes() const;

  /// By kind, control last: what this rank handed to the transport, counted there (MPI), or by the algorithms
  /// of comm/levels.h that all communicators share (threads, record). Over a group, bytes add up to those of
  /// the closed forms, except that small all_reduces (kSmallReduceBytes) and all_to_alls that forward send
  /// more.
  std::array<Sent, kKinds> sent{};
  double wait_seconds = 0;     ///< part of `seconds`: in wait
  double control_seconds = 0;  ///< in control calls, not in `seconds`
};

/// A group of ranks over a small interface. All ranks of the group call the same collectives
/// in the same order; they may wait for them in any order. Arrays are flat: counts are elements, in rank
/// order, may be uneven and zero, and are equal on every rank. Results are flat too, except that all_reduce
/// and broadcast keep the shape of `send`; `purpose` is that of the result's memory. `start_…` returns at
/// once; the sent array is not written until waited for. Reductions add (in float64 or float32, never bf16)
/// by levels, in an order that the number of ranks and the owner of an element alone decide (comm/levels.h;
/// up to four ranks: that of ranks), so every run and every backend gives the same bits, except that between
/// GPUs of several nodes the number of ranks on each decides, too (nccl/nccl_communicator.h). In a group of
/// one, and for the root of a broadcast, the result may share its memory with `send`.
///
/// Errors: CommError when counts do not fit the arrays, a rank was lost, or peers disagree on the call.
class Communicator {
 public:
  /// The color and key of any rank of the group; must give the same answers on every rank.
  using ColorAndKey = std::function<std::pair<int, int>(int rank)>;

  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Ends the whole job with this exit code, now, whatever other ranks do. Where ranks are threads, all of
  /// their pending and future calls throw CommError instead, and this returns. The one call that may come
  /// from another thread than the rank's own.
  virtual void abort(int exit_code) = 0;

  /// The ranks whose color is that of this rank, ordered by key, then by rank. Collective. The label names
  /// the group in logs and errors and is the same on all ranks: usually the mesh axis.
  std::unique_ptr<Communicator> split(const std::string& label, const ColorAndKey& color_and_key);

  /// Result: all pieces one after the other. counts[rank()] is send.count().
  Pending start_all_gather(const Array& send, std::span<const std::int64_t> counts,
                           Purpose purpose = Purpose::kActivations, Urgency urgency = Urgency::kUrgent);
  /// Result: the sum over ranks of their r-th piece, for r = rank(); counts add up to send.count().
  Pending start_reduce_scatter(const Array& send, std::span<const std::int64_t> counts,
                               ReduceOp op = ReduceOp::kSum, Purpose purpose = Purpose::kActivations,
                               Urgency urgency = Urgency::kUrgent);
  /// Result: the sum over ranks, whole, equal in every bit on all ranks.
  Pending start_all_reduce(const Array& send, ReduceOp op = ReduceOp::kSum,
                           Purpose purpose = Purpose::kActivations, Urgency urgency = Urgency::kUrgent);
  /// Result: for each rank in order what it sent here; send holds for each rank in order what goes there.
  /// @param block  the most that any rank sends any other, on all ranks alike: it goes by levels
  ///               (comm/levels.h), padded to that, where small messages to everyone would take longer; 0:
  ///               to each rank that gets something at once.
  Pending start_all_to_all(const Array& send, std::span<const std::int64_t> send_counts,
                           std::span<const std::int64_t> receive_counts, std::int64_t block = 0);
  /// Result: the root's array. Every rank passes an array of the same count and type.
  Pending start_broadcast(const Array& send, int root);
  /// Point to point: each message sends a run of `send`, each expected one fills a run of the result of
  /// `receive_count` elements; what no message fills is arbitrary. Several messages between one pair match
  /// in order; a rank may send to itself. Every rank of the group calls it, if with no messages.
  Pending start_exchange(const Array& send, std::span<const Message> sends, std::span<const Message> receives,
                         std::int64_t receive_count);

  Array all_gather(const Array& send, std::span<const std::int64_t> counts) {
    return start_all_gather(send, counts).wait();
  }
  Array reduce_scatter(const Array& send, std::span<const std::int64_t> counts,
                       ReduceOp op = ReduceOp::kSum) {
    return start_reduce_scatter(send, counts, op).wait();
  }
  Array all_reduce(const Array& send, ReduceOp op = ReduceOp::kSum) {
    return start_all_reduce(send, op).wait();
  }
  Array all_to_all(const Array& send, std::span<const std::int64_t> send_counts,
                   std::span<const std::int64_t> receive_counts, std::int64_t block = 0) {
    return start_all_to_all(send, send_counts, receive_counts, block).wait();
  }
  Array broadcast(const Array& send, int root) { return start_broadcast(send, root).wait(); }
  Array exchange(const Array& send, std::span<const Message> sends, std::span<const Message> receives,
                 std::int64_t receive_count) {
    return start_exchange(send, sends, receives, receive_count).wait();
  }

  // Control values of the program itself, not counted as traffic of the model. Texts go to one and come from
  // one: no rank but the root holds a text of every other.

  /// Equal number of values on every rank, the same result on all. A NaN on any rank wins over max and min.
  std::vector<double> all_reduce(std::span<const double> values, ReduceOp op);
  /// At the root every rank's text, in rank order; elsewhere nothing.
  std::vector<std::string> gather_text(std::string text, int root = 0);
  /// The text that the root has for this rank. @param texts  one per rank, at the root; ignored elsewhere.
  std::string scatter_text(std::vector<std::string> texts, int root = 0);
  /// The root's text.
  std::string broadcast_text(std::string text, int root = 0);
  void barrier();

  /// Whether calls on arrays of a device may be part of work that is recorded (array/device_runtime.h): where
  /// the device alone carries them.
  virtual bool records() const { return size() == 1; }
  /// Throws CommError when a call that a device carries is known to have failed: its result is not valid.
  virtual void check() {}

  Context& context() const { return *context_; }
  Traffic& traffic() const;
  /// The calls of this rank on this and all groups of the same job; lives as long as its holder.
  std::shared_ptr<const CallLog> log() const { return {ledger_, &ledger_->log}; }
  /// The state that all calls of this rank so far have left, on this and all groups of the same job; ranks
  /// that made the same calls agree in it.
  struct CallsSoFar {
    Traffic traffic;
    CallLog::Mark log;
    std::deque<std::int64_t> sequences;
  };
  CallsSoFar calls_so_far() { return {ledger_->traffic, ledger_->log.mark(), ledger_->sequences}; }
  /// Forgets the calls made since. A device must have carried none of them, and no group may have been split
  /// off.
  void forget_calls(const CallsSoFar& since);
  /// Logs calls that the rank's device makes again as it replays recorded work.
  void repeat(const std::vector<CallLog::Entry>& calls) { ledger_->log.repeat(calls); }
  const std::string& label() const { return label_; }

 protected:
  /// What a rank keeps over all its groups.
  struct Ledger {
    Traffic traffic;
    CallLog log;
    std::deque<std::int64_t> sequences;  ///< numbers of the next calls, by group
    std::optional<Context> page_locked;  ///< where a device leaves what is sent, once it has
  };

  /// A group of the whole job.
  explicit Communicator(Context& context);
  /// A group split off `parent`.
  Communicator(const Communicator& parent, std::string label);
  /// The same ranks as `other`, with its log and traffic; some calls may be delegated to it.
  struct SameRanks {};
  Communicator(SameRanks, const Communicator& other);
  static Call control_of(Communicator& other, Call call) { return other.do_control(std::move(call)); }
  static std::unique_ptr<Communicator> split_of(Communicator& other, const std::string& label,
                                                const std::vector<int>& members, std::int64_t sequence) {
    return other.do_split(label, members, sequence);
  }

  /// Where transports work: arrays that stand on a device come to them, and go back, through host memory.
  Context& host() const { return context_->host(); }
  /// What a backend can handle besides calls of several ranks on host memory.
  struct Reach {
    bool device = false;         ///< arrays that stand on the context's device: the result does, too
    bool groups_of_one = false;  ///< a rank with itself
    bool arrivals = false;       ///< host memory that a device still fills (Call::arrival)
  };
  virtual Reach reach(const Call& /*call*/) const { return {}; }
  /// Starts a call that the front has checked and that takes more than one rank. What it sends stands on the
  /// host, and so must the result (or both on meta), unless reach() says more.
  virtual std::unique_ptr<Pending::Operation> do_start(Call call) = 0;
  /// A control call: its values, or its texts: of kGather all at the root, else one, or none.
  virtual Call do_control(Call call) = 0;
  /// `members` in the order of the new group, `rank()` among them. `sequence` is that of the call here.
  virtual std::unique_ptr<Communicator> do_split(const std::string& label, const std::vector<int>& members,
                                                 std::int64_t sequence) = 0;
  /// Where a backend adds what it sends.
  std::shared_ptr<Sent> sent_counter(Collective kind) const {
    return {ledger_, &ledger_->traffic.sent[static_cast<std::size_t>(kind)]};
  }

 private:
  class Logged;
  class Staged;

  Pending start(Call call);
  /// Copies what is sent from the device to the host; with `arrives` without waiting for the copy.
  void stage(Call& call, bool arrives);
  Call control(Call call);
  void check_pieces(const Call& call, std::int64_t own_or_whole) const;
  void check_message(const Call& call, const Message& message, std::int64_t available) const;
  [[noreturn]] void refuse(const Call& call, const std::string& why) const;
  bool nothing_travels(const Call& call) const;
  Array local_result(const Call& call) const;

  Context* context_;
  std::shared_ptr<Ledger> ledger_;
  std::string label_;
  bool whole_job_;
  std::int64_t* sequence_;  ///< number of the next call, in the ledger
};

}  // namespace jigsaw::inline comm
