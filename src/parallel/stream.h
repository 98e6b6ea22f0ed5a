#pragma once
#include <vector>

#include "comm/communicator.h"
#include "parallel/redistribute.h"

namespace jigsaw {

/// The pieces that an all-gather would bring together, one after the other as they arrive, so that work on
/// one goes on while the next travels. Sends as many bytes as the all-gather. Collective over the step's
/// axes; all parts must be taken.
class GatherStream {
 public:
  struct Part {
    Box box;  ///< in the global tensor
    Array piece;
  };

  /// Starts all transfers.
  /// @param step  the only step of redistributing x, an all-gather.
  GatherStream(const Rank& rank, const ShardedTensor& x, const Step& step);

  bool done() const { return taken_ == boxes_.size(); }
  /// This rank's own part first, then those of the ranks after it.
  Part next();

 private:
  std::size_t member(std::size_t distance) const { return (own_ + distance) % boxes_.size(); }

  std::vector<Box> boxes_;
  std::size_t own_, taken_ = 0;
  Array piece_;
  std::vector<Pending> arriving_;  // by distance − 1
};

/// The sum that a reduce-scatter would give, of summands that are computed part by part: each travels while
/// the next is computed. Sends as many bytes as the reduce-scatter, and adds in rank order. Collective over
/// the step's axes; all parts must be put.
class ScatterStream {
 public:
  /// @param step  the only step of redistributing a partial tensor, a reduce-scatter.
  ScatterStream(const Rank& rank, const Step& step);

  bool done() const { return put_ == boxes_.size(); }
  /// The part of the global tensor to be put next; this rank's own comes last.
  const Box& box() const { return boxes_[member()]; }
  /// @param part  this rank's summand of that part, f32 or f64.
  void put(const Array& part);
  /// The sum of this rank's part over all ranks.
  Array finish();

 private:
  std::size_t member() const { return (own_ + 1 + put_) % boxes_.size(); }

  const Rank& rank_;
  Communicator& group_;
  std::vector<Box> boxes_;
  std::size_t own_, put_ = 0;
  std::vector<Pending> arriving_;  // summands of the own part, from the ranks before this one
  Array summand_;
};

}  // namespace jigsaw
