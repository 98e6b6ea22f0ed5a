#pragma once
#include <optional>
#include <vector>

#include "comm/communicator.h"
#include "parallel/redistribute.h"

namespace jigsaw {

/// The part of an array that stands in a region of the array's box, as a view, where it is consecutive in
/// memory.
std::optional<Array> consecutive(const Array& array, const Box& box, const Box& region);

/// What an all-gather or all-to-all brings, part by part as it arrives, so that work on one part goes on
/// while the next travels. Each other rank's part comes in several runs. Sends as many bytes as the
/// collective. Collective over the step's axes; all parts must be taken.
class ReceiveStream {
 public:
  struct Part {
    Box box;  ///< in the global tensor; may be empty
    Array piece;
  };

  /// Starts all transfers.
  /// @param step  the only step of redistributing x.
  /// @param runs  into which a part is cut along its first dim of more than one element.
  ReceiveStream(const Rank& rank, const ShardedTensor& x, const Step& step, int runs);

  bool done() const { return taken_ == boxes_.size(); }
  /// This rank's own part first, then those of the ranks after it.
  Part next();

 private:
  std::vector<Box> boxes_;  // this rank's, then the runs by distance of the sender from this rank
  std::size_t taken_ = 0;
  Array own_;
  std::vector<Pending> arriving_;  // by run
};

/// What a reduce-scatter or all-to-all makes of a tensor that is computed part by part: each part travels
/// while the next is computed. Sends as many bytes as the collective; sums are formed in rank order.
/// Collective over the step's axes; all parts must be put.
class SendStream {
 public:
  /// @param from  layout of what is computed.
  /// @param step  the only step of redistributing it.
  /// @param runs  into which another rank's part is cut along its first dim of more than one element.
  SendStream(const Rank& rank, const Layout& from, const Step& step, int runs);

  bool done() const { return put_ == sends_.size(); }
  /// What of the global tensor is to be put next: runs for the rank after this one, and so on; this rank's
  /// own part comes last, whole.
  const Box& box() const { return sends_[put_]; }
  /// @param part  of a reduce-scatter: a summand, f32 or f64. Its memory may be written.
  void put(const Array& part);
  /// This rank's piece after the step.
  Array finish();

 private:
  Array sum();
  Array joined();

  const Rank& rank_;
  Collective kind_;
  Box target_;
  int runs_;
  // Runs by distance of the peer after and before this rank, then this rank's own part.
  std::vector<Box> sends_, receives_;
  std::size_t put_ = 0;
  Communicator& group_;
  std::vector<Pending> arriving_;  // by run
  Array own_;
};

}  // namespace jigsaw
