#pragma once
#include <memory>
#include <string>
#include <vector>

#include "layers/model.h"
#include "task/loss.h"

namespace jigsaw::inline task {

/// The losses of a model's output and of those beside it on coarser grids (Model::sides()), as nnU-Net's deep
/// supervision (Isensee et al. 2021) adds them up: each grid counts half as much as the next finer one, all
/// of them together 1. Coarser ones are compared with the labels nearest to the middle of their points
/// (torch.nn.functional.interpolate, "nearest-exact"). Of a model with one output it is the loss itself.
class DeepSupervision {
 public:
  /// @param loss  lives as long as this.
  /// @throws ConfigError  where the model has several outputs, and the loss is not one of labels.
  DeepSupervision(const Model& model, const Loss& loss);

  /// Paths of the blocks that coarsen targets.
  const std::vector<std::string>& blocks() const { return paths_; }
  /// Plans them. @param samples  that run at a time.
  void plan(const Rank& rank, PlanBook& plans, std::int64_t samples) const;

  struct Outputs {
    const Variable& finest;
    const std::vector<Variable>& sides;  ///< in the order of Model::sides()
  };
  /// As Loss::backward() of all outputs together. A sample is empty if nothing of the finest target counts.
  /// @param target  of the finest, this rank's piece.
  MeanArray backward(const Rank& rank, PlanBook& plans, const Outputs& outputs, const Array& target,
                     double scale) const;

 private:
  /// The target on the grid of a side, where that side's loss takes it.
  Array coarsened(const Rank& rank, PlanBook& plans, std::size_t side, const Variable& target,
                  const Layout& prediction) const;

  const Model& model_;
  const Loss& loss_;
  std::vector<std::unique_ptr<Loss>> losses_;  ///< of the sides
  std::vector<std::string> paths_;
};

}  // namespace jigsaw::inline task
