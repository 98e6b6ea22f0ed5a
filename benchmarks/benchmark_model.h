#pragma once
#include <functional>
#include <memory>

#include "layers/registry.h"
#include "optim/optimizer.h"
#include "task/loss.h"

namespace jigsaw {

/// A model with made-up inputs and targets, float32, AdamW without clipping: whole training steps
/// for benchmarks, on any mesh.
class BenchmarkModel {
 public:
  /// @param append  adds the layers. @param samples  of the global batch.
  BenchmarkModel(const Rank& rank, const ModelDescription& description,
                 const std::function<void(Model&)>& append, bool recompute, const CostModel& cost = {},
                 std::int64_t samples = 1);

  /// One training step; its seconds.
  double step();
  Optimizer& optimizer() { return *optimizer_; }

 private:
  Rank rank_;
  Model model_;
  PlanBook plans_;
  FieldLoss loss_;
  Layout input_, output_;
  Array x_, target_;
  std::unique_ptr<Optimizer> optimizer_;
};

}  // namespace jigsaw
