#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "array/array.h"

namespace jigsaw {

/// Kinds of collective, as counted in summary.json.
enum class Collective : std::uint8_t { kAllGather, kReduceScatter, kAllReduce, kAllToAll, kBroadcast, kExchange };
inline constexpr int kCollectives = 6;
const char* name(Collective kind);

enum class ReduceOp : std::uint8_t { kSum, kMax, kMin };

/// A collective under way. Owns what it sends and receives until it is waited for.
class Pending {
 public:
  class Operation {
   public:
    virtual ~Operation() = default;
    /// Blocks until the result is there; called once.
    virtual Array wait() = 0;
    /// Lets the transfer progress; true when wait() would not block.
    virtual bool poll() = 0;
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

/// A message to, or expected from, one rank: `count` elements.
struct Message {
  int peer = 0;
  std::int64_t first = 0;  ///< first element in the packed send or receive array
  std::int64_t count = 0;
};

/// Bytes sent so far, by closed form over n ranks: all_gather (n−1) × own piece; reduce_scatter whole −
/// own piece; all_reduce 2(n−1)/n × whole; all_to_all, exchange and broadcast (by the root): what goes to
/// others. Shared by a communicator and all that were split off it.
struct Traffic {
  std::array<double, kCollectives> sent_bytes{};
  std::array<std::int64_t, kCollectives> calls{};
  double seconds = 0;  ///< time spent in start and wait
  double total_bytes() const;
};

/// A group of ranks, a value over a small interface. All ranks of the group call the same collectives
/// in the same order. Arrays are flat: counts are elements, in rank order, may be uneven and zero, and are
/// equal on every rank. `start_…` returns at once; the sent array is not written until waited for.
/// Reductions add in rank order (in float64 or float32, never bf16), so every run gives the same bits.
///
/// Errors: CommError when counts do not fit the arrays, a rank was lost, or peers disagree on the call.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// The ranks of equal `color`, ordered by `key`, then by rank. Collective.
  virtual std::unique_ptr<Communicator> split(int color, int key) = 0;
  /// Ends the whole job with this exit code, now, whatever other ranks do. Where ranks are threads, all of
  /// their pending and future calls throw CommError instead, and this returns.
  virtual void abort(int exit_code) = 0;

  /// Result: all pieces one after the other. counts[rank()] is send.count().
  Pending start_all_gather(const Array& send, std::span<const std::int64_t> counts);
  /// Result: the sum over ranks of their r-th piece, for r = rank(); counts add up to send.count().
  Pending start_reduce_scatter(const Array& send, std::span<const std::int64_t> counts, ReduceOp op = ReduceOp::kSum);
  /// Result: the sum over ranks, whole, equal in every bit on all ranks.
  Pending start_all_reduce(const Array& send, ReduceOp op = ReduceOp::kSum);
  /// Result: for each rank in order what it sent here; send holds for each rank in order what goes there.
  Pending start_all_to_all(const Array& send, std::span<const std::int64_t> send_counts,
                           std::span<const std::int64_t> receive_counts);
  /// Result: the root's array. Every rank passes an array of the same count and type.
  Pending start_broadcast(const Array& send, int root);
  /// Point to point: each message sends a run of `send`, each expected one fills a run of the result of
  /// `receive_count` elements. Several messages between one pair match in order; a rank may send to itself.
  Pending start_exchange(const Array& send, std::span<const Message> sends, std::span<const Message> receives,
                         std::int64_t receive_count);

  Array all_gather(const Array& send, std::span<const std::int64_t> counts) {
    return start_all_gather(send, counts).wait();
  }
  Array reduce_scatter(const Array& send, std::span<const std::int64_t> counts, ReduceOp op = ReduceOp::kSum) {
    return start_reduce_scatter(send, counts, op).wait();
  }
  Array all_reduce(const Array& send, ReduceOp op = ReduceOp::kSum) { return start_all_reduce(send, op).wait(); }
  Array all_to_all(const Array& send, std::span<const std::int64_t> send_counts,
                   std::span<const std::int64_t> receive_counts) {
    return start_all_to_all(send, send_counts, receive_counts).wait();
  }
  Array broadcast(const Array& send, int root) { return start_broadcast(send, root).wait(); }

  /// Small control values of the program itself, not counted as traffic of the model.
  std::vector<double> all_reduce(std::span<const double> values, ReduceOp op);
  /// Every rank's text, in rank order. Lengths may differ.
  std::vector<std::string> all_gather_text(const std::string& text);
  void barrier();

  Traffic& traffic() const { return *traffic_; }

 protected:
  Communicator(Context& context, std::shared_ptr<Traffic> traffic)
      : context_(&context), traffic_(std::move(traffic)) {}

  Context& context() const { return *context_; }

  virtual Pending do_all_gather(const Array& send, std::span<const std::int64_t> counts) = 0;
  virtual Pending do_reduce_scatter(const Array& send, std::span<const std::int64_t> counts, ReduceOp op) = 0;
  virtual Pending do_all_reduce(const Array& send, ReduceOp op) = 0;
  virtual Pending do_all_to_all(const Array& send, std::span<const std::int64_t> send_counts,
                                std::span<const std::int64_t> receive_counts) = 0;
  virtual Pending do_broadcast(const Array& send, int root) = 0;
  virtual Pending do_exchange(const Array& send, std::span<const Message> sends, std::span<const Message> receives,
                              std::int64_t receive_count) = 0;

 private:
  Context* context_;
  std::shared_ptr<Traffic> traffic_;
};

}  // namespace jigsaw
