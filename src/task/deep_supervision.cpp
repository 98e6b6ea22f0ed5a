#include "task/deep_supervision.h"

#include <cmath>

#include "autograd/field_operations.h"
#include "base/error.h"
#include "base/text.h"
#include "parallel/redistribute.h"

namespace jigsaw::inline task {

DeepSupervision::DeepSupervision(const Model& model, const Loss& loss) : model_(model), loss_(loss) {
  for (const FieldShape& side : model.sides()) {
    paths_.push_back(concat("supervision.target.", losses_.size()));
    losses_.push_back(loss.coarser(side.space[0]));
  }
}

namespace {

/// The target on a grid of so many points.
Variable nearest(Tape& tape, const std::string& path, const Variable& target, const Shape& space) {
  return tape.block({path}, {target}, [&](Tape& on, const std::vector<Variable>& x) {
    Padding ends;
    ends.dims.assign(static_cast<std::size_t>(space.rank()), {0, 0, Edge::kReplicate, Edge::kReplicate});
    return resample(on, x[0], Interpolation::kNearestExact, space, space, ends);
  });
}

}  // namespace

void DeepSupervision::plan(const Rank& rank, PlanBook& plans, std::int64_t samples) const {
  Tape trace(rank, plans, Tape::Mode::kTrace);
  const Layout target = loss_.target_layout(rank.mesh, model_.output_layout(rank.mesh, samples));
  for (std::size_t side = 0; side < paths_.size(); ++side)
    nearest(trace, paths_[side], Variable::traced(target, -1), model_.sides()[side].space);
}

Array DeepSupervision::coarsened(const Rank& rank, PlanBook& plans, std::size_t side, const Variable& target,
                                 const Layout& prediction) const {
  Tape tape(rank, plans, Tape::Mode::kForward, target.value().piece.dtype());
  const Variable coarse = nearest(tape, paths_[side], target, model_.sides()[side].space);
  return redistribute(rank, coarse.value(), losses_[side]->target_layout(rank.mesh, prediction)).piece;
}

MeanArray DeepSupervision::backward(const Rank& rank, PlanBook& plans, const Outputs& outputs,
                                    const Array& target, double scale) const {
  if (losses_.empty()) return loss_.backward(rank, outputs.finest, target, scale);
  require(outputs.sides.size() == losses_.size(), "each side of the model gives an output");
  // Sides stand from the coarsest to the finest.
  double share = 1 / (2 - std::ldexp(1, -static_cast<int>(losses_.size())));
  MeanArray mean = MeanArray::none(rank.context);
  mean.add(rank.context, loss_.backward(rank, outputs.finest, target, share * scale), share);
  const Variable whole({target, loss_.target_layout(rank.mesh, outputs.finest.layout())}, false);
  for (std::size_t side = losses_.size(); side-- > 0;) {
    share /= 2;
    const Variable& prediction = outputs.sides[side];
    const Array coarse = coarsened(rank, plans, side, whole, prediction.layout());
    MeanArray of_side = losses_[side]->backward(rank, prediction, coarse, share * scale);
    of_side.forget_empty(rank.context);
    mean.add(rank.context, of_side, share);
  }
  return mean;
}

}  // namespace jigsaw::inline task
