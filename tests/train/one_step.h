#pragma once
#include <string>
#include <vector>

#include "base/text.h"
#include "config/json.h"

namespace jigsaw::testing {

/// How a step is cut: the mesh, and the parts of its batch.
struct CutStep {
  int data = 1;
  std::vector<int> domain = {1, 1};
  int tensor = 1;
  std::int64_t accumulate = 1;
  std::string recompute = "none";

  int ranks() const { return data * domain[0] * domain[1] * tensor; }
  std::string to_string() const {
    return concat("data ", data, " domain [", join(domain, ", "), "] tensor ", tensor, " accumulate ",
                  accumulate);
  }
};

/// Adds to a configuration the keys of one step in float64, after which parameters are less their gradient.
inline void take_gradient_away(Json& configuration, const CutStep& cut, std::int64_t batch,
                               std::int64_t rollout) {
  configuration["optimizer"] = {
      {"type", "sgd"}, {"learning_rate", 1}, {"momentum", 0}, {"weight_decay", 0}, {"clip_norm", 0}};
  configuration["schedule"] = {{"type", "constant"}};
  configuration["mesh"] = {{"data", cut.data}, {"domain", cut.domain}, {"tensor", cut.tensor}};
  configuration["train"] = {{"steps", 1},          {"batch_size", batch}, {"accumulate", cut.accumulate},
                            {"precision", "fp64"}, {"rollout", rollout},  {"recompute", cut.recompute}};
}

}  // namespace jigsaw::testing
