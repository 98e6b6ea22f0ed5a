#pragma once
#include <vector>

#include "parallel/layout.h"
#include "parallel/mesh.h"

namespace jigsaw::testing {

/// A mesh on which scores are formed.
struct MeshCase {
  int data;
  std::vector<int> domain;
  int tensor;
  int data_cuts = 0;  ///< which dim of [B, H, W, C] the axis `data` cuts
};

/// Of a field [B, H, W, C] in which each other axis cuts its own dim.
inline Layout score_layout(const Mesh& mesh, const Shape& global, int data_cuts) {
  Layout layout{global, {}};
  layout.placements[Mesh::kData] = Placement::shard(data_cuts);
  for (int dim = 0; dim < 2; ++dim) layout.placements[mesh.domain(dim)] = Placement::shard(1 + dim);
  layout.placements[mesh.tensor()] = Placement::shard(3);
  return layout;
}

}  // namespace jigsaw::testing
