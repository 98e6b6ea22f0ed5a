#include "autograd/operations.h"
#include "base/text.h"
#include "proof/operation_cases.h"

namespace jigsaw {

namespace {

/// Grids that patches divide and that they do not, of 1 to 5 patches a side.
struct Grids {
  Shape patch;
  std::vector<Shape> spaces;
};

std::vector<Grids> grids() {
  return {{{3}, {{13}, {6}, {12}}},
          {{2, 3}, {{9, 8}, {4, 13}, {7, 3}}},
          {{1, 2, 2}, {{2, 3, 5}, {4, 9, 4}, {3, 4, 7}}}};
}

constexpr std::int64_t kSamples[] = {3, 2, 4}, kChannels[] = {2, 5, 3};

Shape field_shape(const Grids& grid, std::size_t i) {
  Shape shape{kSamples[i]};
  for (const std::int64_t extent : grid.spaces[i]) shape.append(extent);
  shape.append(kChannels[i]);
  return shape;
}

Shape patches_shape(const Grids& grid, std::size_t i) {
  Shape shape{kSamples[i]};
  for (int dim = 0; dim < grid.patch.rank(); ++dim) {
    shape.append((grid.spaces[i][dim] + grid.patch[dim] - 1) / grid.patch[dim]);
  }
  shape.append(kChannels[i]);
  shape.append(grid.patch.count());
  return shape;
}

}  // namespace

std::vector<OperationCase> patchify_cases() {
  std::vector<OperationCase> cases;
  for (const Grids& grid : grids()) {
    OperationCase& one = cases.emplace_back(OperationCase{concat("by ", grid.patch), {}});
    for (std::size_t i = 0; i < grid.spaces.size(); ++i) {
      one.instances.push_back(
          {{field_shape(grid, i)}, [patch = grid.patch](Tape& tape, const std::vector<Variable>& x) {
             return patchify(tape, x[0], patch);
           }});
    }
  }
  return cases;
}

std::vector<OperationCase> unpatchify_cases() {
  std::vector<OperationCase> cases;
  for (const Grids& grid : grids()) {
    OperationCase& one = cases.emplace_back(OperationCase{concat("by ", grid.patch), {}});
    for (std::size_t i = 0; i < grid.spaces.size(); ++i) {
      one.instances.push_back(
          {{patches_shape(grid, i)}, [=, space = grid.spaces[i]](Tape& tape, const std::vector<Variable>& x) {
             return unpatchify(tape, x[0], grid.patch, space);
           }});
    }
  }
  return cases;
}

}  // namespace jigsaw
