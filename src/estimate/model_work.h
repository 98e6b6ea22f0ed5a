#pragma once
#include <vector>

#include "estimate/step_estimate.h"

namespace jigsaw::inline estimate {

/// What a step of a model takes at least, whatever its mesh: found once, from the model's operations on one
/// rank, so that most meshes need not be planned.
struct ModelWork {
  /// An operation with a parameter: along each axis of a mesh either the parameter or the values travel.
  struct Product {
    double parameter = 0, values = 0;  ///< elements: of the lesser of what goes in and comes out
    int times = 1;                     ///< operations that are alike
  };
  double forward_flops = 0;  ///< of a batch and rollout
  double parameters = 0;     ///< elements
  std::vector<Product> products;
  std::int64_t samples = 1;         ///< that run at a time, each member of an ensemble as one
  std::vector<std::int64_t> units;  ///< patches along each spatial axis
  std::int64_t channels = 1;        ///< the most that stand between two blocks
};
ModelWork work_of(const Configuration& configuration, const DataDescription& data);

/// A mesh with what a step on it takes.
struct MeshBound {
  MeshOptions mesh;
  double at_least = 0;  ///< seconds: the longer of its products and its transfers
  double guess = 0;     ///< seconds: both, with uneven pieces; the order in which meshes are planned
};

/// All meshes of so many ranks on which every rank has a part of the work: at most as many groups as samples,
/// as many cuts as patches and channels. By guess.
std::vector<MeshBound> bound_meshes(const ModelWork& work, const Configuration& configuration,
                                    const MachineModel& machine, int ranks);

/// "data 1, domain [2, 1], tensor 2".
std::string to_string(const MeshOptions& mesh);
bool same(const MeshOptions& a, const MeshOptions& b);

}  // namespace jigsaw::inline estimate
