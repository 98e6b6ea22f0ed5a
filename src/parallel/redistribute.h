#pragma once
#include <array>

#include "parallel/sharded_tensor.h"

namespace jigsaw::inline parallel {

/// The same global value in another layout: Shard→Replicate by all-gather, Partial→Replicate by all-reduce,
/// Partial→Shard by reduce-scatter, Shard(a)→Shard(b) by all-to-all, Replicate→Shard by a local cut; several
/// axes at once where they change alike. Partial pieces are f32 or f64, and are added in rank order.
///
/// @throws ShapeError when the global shapes differ, or `to` asks for a Partial that `x` is not.
ShardedTensor redistribute(const Rank& rank, const ShardedTensor& x, const Layout& to);

/// One collective of a redistribution.
struct Step {
  Collective kind;  ///< kBroadcast stands for a local cut, which sends nothing
  AxisSet axes;     ///< ranks that take part
  Layout to;        ///< layout afterwards
};
/// At most three steps, stored without allocation: planning compares very many redistributions.
class Steps {
 public:
  void push_back(const Step& step) { steps_[size_++] = step; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const Step& operator[](std::size_t i) const { return steps_[i]; }
  const Step* begin() const { return steps_.data(); }
  const Step* end() const { return steps_.data() + size_; }

 private:
  std::array<Step, 3> steps_;
  std::size_t size_ = 0;
};
/// The chain that redistribute() follows; empty when nothing changes.
Steps redistribution_steps(const MeshShape& mesh, const Layout& from, const Layout& to);

/// Whether in an all-to-all the rank at `from` is the one to send to the rank at `to`: where `held`, the
/// layout before, is replicated along one of the step's axes, each rank takes from those with its own
/// coordinate.
bool feeds(const Step& step, const Layout& held, const Coordinates& from, const Coordinates& to);

}  // namespace jigsaw::inline parallel
