#include "support/enumerated_cost.h"

#include <algorithm>
#include <vector>

namespace jigsaw::testing {

namespace {

std::vector<Box> boxes_of(const MeshShape& mesh, const Layout& layout) {
  std::vector<Box> boxes;
  for (int rank = 0; rank < mesh.ranks(); ++rank) boxes.push_back(layout.box(mesh, mesh.coordinates(rank)));
  return boxes;
}

}  // namespace

double enumerated_sent(const MeshShape& mesh, const Step& step, const Layout& held) {
  const std::vector<Box> before = boxes_of(mesh, held), after = boxes_of(mesh, step.to);
  double ranks = 1, most = 0;
  for (int axis = 0; axis < mesh.axes; ++axis) {
    if (contains(step.axes, axis)) ranks *= mesh.size[static_cast<std::size_t>(axis)];
  }
  for (std::size_t here = 0; here < before.size(); ++here) {
    const auto mine = static_cast<double>(before[here].extent.count());
    double elements = 0;
    if (step.kind == Collective::kAllGather) elements = (ranks - 1) * mine;
    if (step.kind == Collective::kAllReduce) elements = 2 * (ranks - 1) / ranks * mine;
    if (step.kind == Collective::kReduceScatter)
      elements = mine - static_cast<double>(after[here].extent.count());
    if (step.kind == Collective::kAllToAll) {
      const Coordinates at = mesh.coordinates(static_cast<int>(here));
      for (std::size_t there = 0; there < after.size(); ++there) {
        const Coordinates to = mesh.coordinates(static_cast<int>(there));
        bool member = there != here;
        for (std::size_t axis = 0; axis < at.size(); ++axis)
          member = member && (at[axis] == to[axis] || contains(step.axes, static_cast<int>(axis)));
        if (member && feeds(step, held, at, to))
          elements += static_cast<double>(intersect(before[here], after[there]).extent.count());
      }
    }
    most = std::max(most, elements);
  }
  return most;
}

}  // namespace jigsaw::testing
