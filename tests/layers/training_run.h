#pragma once
#include <map>
#include <string>
#include <vector>

#include "comm/thread/run_ranks.h"
#include "layers/registry.h"
#include "optim/adamw.h"
#include "train/loss.h"

namespace jigsaw {

/// A few training steps of a model on made-up data, on any mesh: what tests compare between meshes.
struct TrainingRun {
  Json model;
  Shape space = {33, 49};
  std::int64_t samples = 4, inputs = 5, outputs = 2;
  DType dtype = DType::kFloat64;
  Zero zero = Zero::kNone;
  int steps = 3;
  bool recompute = false;
  std::map<std::string, double> variable_weights;

  struct Result {
    std::vector<double> losses, norms;
    std::map<std::string, std::vector<double>> gradients;              ///< of step 1, whole, by name
    std::map<std::string, std::vector<double>> parameters;             ///< after the last step
    std::vector<std::int64_t> parameter_bytes, peak_activation_bytes;  ///< by rank
  };
  struct MeshSizes {
    int data = 1;
    std::vector<int> domain = {1, 1};
    int tensor = 1;
    int ranks() const { return data * domain[0] * domain[1] * tensor; }
  };

  Result run(const MeshSizes& mesh) const;
  Result run_rank(Communicator& world, const MeshSizes& mesh) const;
};

}  // namespace jigsaw
