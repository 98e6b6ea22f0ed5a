#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "comm/communicator.h"
#include "parallel/redistribute.h"

namespace jigsaw::inline parallel {

/// The part of an array that stands in a region of the array's box, as a view, where it is consecutive in
/// memory.
std::optional<Array> consecutive(const Array& array, const Box& box, const Box& region);

/// How the data that one rank sends another in a step are divided: into runs along their first dim of more
/// than one element, which are computed one by one, and of which runs_per_message() travel together. Runs
/// decide the order of sums; messages only the transport.
struct Cut {
  int runs = 1;
  int messages = 1;  ///< divides `runs`
  int runs_per_message() const { return runs / messages; }
  bool operator==(const Cut&) const = default;
};

/// What an all-gather or all-to-all brings, part by part as it arrives, so that work on one part overlaps the
/// transfer of the next. Sends as many bytes as the collective. Collective over the step's axes; all parts
/// must be taken.
class ReceiveStream {
 public:
  struct Part {
    Box box;  ///< in the global tensor; may be empty
    Array piece;
  };

  /// Starts all transfers.
  /// @param step  the only step of redistributing x.
  ReceiveStream(const Rank& rank, const ShardedTensor& x, const Step& step, const Cut& cut);

  bool done() const;
  /// This rank's own part first, then those of the ranks after it.
  Part next();

 private:
  struct Plan;

  std::shared_ptr<const Plan> plan_;
  std::size_t taken_ = 0;
  Array own_, arrived_;  // the last message that did
  std::vector<Pending> arriving_;
};

/// What a reduce-scatter or all-to-all makes of a tensor that is computed part by part: each part travels
/// while the next is computed. Sends as many bytes as the collective; sums are formed in rank order.
/// Collective over the step's axes; all parts must be put.
class SendStream {
 public:
  /// @param from  layout of what is computed.
  /// @param step  the only step of redistributing it.
  SendStream(const Rank& rank, const Layout& from, const Step& step, const Cut& cut);

  bool done() const;
  /// What of the global tensor is to be put next: runs for the rank after this one, and so on; this rank's
  /// own part comes last, whole.
  const Box& box() const;
  /// @param part  of a reduce-scatter: a summand, f32 or f64. Its memory may be written.
  void put(const Array& part);
  /// This rank's piece after the step.
  Array finish();

 private:
  struct Plan;

  Array sum();
  Array joined();
  /// The message with this number.
  const Array& message(std::size_t number);

  const Rank& rank_;
  std::shared_ptr<const Plan> plan_;
  std::size_t put_ = 0;
  Communicator& group_;
  std::vector<Array> waiting_;  // runs of a message that is not whole yet
  std::vector<Pending> arriving_;
  std::vector<Array> arrived_;  // by message
  Array own_;
};

}  // namespace jigsaw::inline parallel
