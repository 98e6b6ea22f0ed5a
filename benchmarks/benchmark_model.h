#pragma once
#include <functional>
#include <memory>

#include "layers/registry.h"
#include "optim/adamw.h"
#include "train/loss.h"

namespace jigsaw {

/// A model with made-up inputs and targets, one sample, float32, AdamW without clipping: whole training steps
/// for benchmarks, on any mesh.
class BenchmarkModel {
 public:
  /// @param append  adds the layers.
  BenchmarkModel(const Rank& rank, const ModelDescription& description,
                 const std::function<void(Model&)>& append, bool recompute, const CostModel& cost = {});

  /// One training step; its seconds.
  double step();
  AdamW& optimizer() { return *optimizer_; }

 private:
  Rank rank_;
  Model model_;
  PlanBook plans_;
  FieldLoss loss_;
  Layout input_, output_;
  Array x_, target_;
  std::unique_ptr<AdamW> optimizer_;
};

}  // namespace jigsaw
