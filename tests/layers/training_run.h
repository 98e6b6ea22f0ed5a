#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "layers/registry.h"
#include "optim/adamw.h"
#include "optim/optimizer.h"
#include "support/parameters.h"
#include "support/test_ranks.h"
#include "task/loss.h"

namespace jigsaw {

/// A few training steps of a model, on made-up data unless told otherwise, on any mesh: what tests compare
/// between meshes, with goldens and between types.
struct TrainingRun {
  Json model;
  Shape space = {33, 49};
  std::int64_t samples = 4, inputs = 5, outputs = 2;
  std::vector<std::int64_t> time_channels = {};  ///< of the inputs
  DType dtype = DType::kFloat64;
  Zero zero = Zero::kNone;
  int steps = 3;
  bool recompute = false;
  CostModel cost;
  std::map<std::string, double> variable_weights;
  AdamWOptions optimizer_options;
  std::function<double(int step)> rate_factor = [](int) { return 1.0; };
  std::vector<double> row_weights;  ///< empty: made up
  testing::Tensors initial;         ///< empty: as the model initialises them
  /// Whole inputs "x" and targets "y" of a step, from 1 on; absent: made up. Called by several threads.
  std::function<std::vector<double>(const std::string& name, int step)> data;

  struct Result {
    std::vector<double> losses, norms;
    testing::Tensors gradients;                                        ///< of step 1, whole, by name
    testing::Tensors parameters;                                       ///< after the last step
    testing::Tensors outputs;                                          ///< "output" of step 1
    std::vector<std::int64_t> parameter_bytes, peak_activation_bytes;  ///< by rank
    std::map<std::string, std::vector<std::int64_t>>
        pieces;                  ///< elements that operations use, by parameter, rank
    std::int64_t exchanges = 0;  ///< of the last rank
    std::int64_t buffers = 0;    ///< that are gathered for the block with the most
  };
  struct MeshSizes {
    int data = 1;
    std::vector<int> domain = {1, 1};
    int tensor = 1;
    int ranks() const { return data * domain[0] * domain[1] * tensor; }
  };

  Result run(const MeshSizes& mesh) const;
  Result run_rank(Communicator& world, const MeshSizes& mesh) const;
  FieldLoss make_loss() const;
};

}  // namespace jigsaw
