#include "array/box_runs.h"

#include <algorithm>

namespace jigsaw::inline array {
namespace {

/// Row-major position in `box` of the element at `index`.
std::int64_t position(const Box& box, const Shape& index) {
  std::int64_t result = 0;
  for (int dim = 0; dim < index.rank(); ++dim) {
    result = result * box.extent[dim] + index[dim] - box.begin[dim];
  }
  return result;
}

}  // namespace

std::vector<Box> boxes_of_run(const Box& box, std::int64_t first, std::int64_t count) {
  const int rank = box.extent.rank();
  std::vector<Box> boxes;
  while (count > 0) {
    // The outermost dim along which a whole slice begins here and still belongs to the run.
    int dim = 0;
    while (dim < rank - 1 &&
           (first % box.extent.count(dim + 1, rank) != 0 || count < box.extent.count(dim + 1, rank))) {
      ++dim;
    }
    Box part = box;
    std::int64_t rest = first, taken = 1;
    for (int outer = rank - 1; outer >= 0; --outer) {
      const std::int64_t at = rest % box.extent[outer];
      rest /= box.extent[outer];
      if (outer > dim) {
        taken *= part.extent[outer];
        continue;
      }
      part.begin[outer] = box.begin[outer] + at;
      part.extent[outer] = outer == dim ? std::min(count / taken, box.extent[outer] - at) : 1;
      taken *= part.extent[outer];
    }
    boxes.push_back(part);
    first += taken;
    count -= taken;
  }
  return boxes;
}

void for_each_common_run(const Box& part, const Box& a, const Box& b,
                         const std::function<void(std::int64_t, std::int64_t, std::int64_t)>& f) {
  if (part.empty()) return;
  // Dims from `inner` on are whole in both, so that the dim before them runs on through them.
  int inner = part.extent.rank();
  while (inner > 0 && part.extent[inner - 1] == a.extent[inner - 1] &&
         part.extent[inner - 1] == b.extent[inner - 1]) {
    --inner;
  }
  const int outer = std::max(inner - 1, 0);
  const std::int64_t count = part.extent.count(outer, part.extent.rank());
  Shape index = part.begin;
  for (std::int64_t run = part.extent.count(0, outer); run > 0; --run) {
    f(position(a, index), position(b, index), count);
    for (int dim = outer - 1; dim >= 0; --dim) {
      if (++index[dim] < part.end(dim)) break;
      index[dim] = part.begin[dim];
    }
  }
}

}  // namespace jigsaw::inline array
