#include "array/box_cover.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace jigsaw::inline array {

namespace {

/// Faces of boxes across a dim that lie inside of the whole.
std::vector<std::int64_t> inner_faces(const Box& whole, const std::vector<Box>& parts, int dim) {
  std::vector<std::int64_t> faces;
  for (const Box& part : parts) {
    if (part.begin[dim] > whole.begin[dim]) faces.push_back(part.begin[dim]);
    if (part.end(dim) < whole.end(dim)) faces.push_back(part.end(dim));
  }
  return faces;
}

/// A dim and a place to cut the whole: the middle one of the most faces. No dim when there are none.
std::pair<int, std::int64_t> choose_cut(const Box& whole, const std::vector<Box>& parts) {
  int best = -1;
  std::vector<std::int64_t> most;
  for (int dim = 0; dim < whole.begin.rank(); ++dim) {
    std::vector<std::int64_t> faces = inner_faces(whole, parts, dim);
    if (faces.size() <= most.size()) continue;
    best = dim;
    most = std::move(faces);
  }
  if (best < 0) return {best, 0};
  const auto middle = most.begin() + std::ssize(most) / 2;
  std::nth_element(most.begin(), middle, most.end());
  return {best, *middle};
}

}  // namespace

bool make_up(const Box& whole, std::vector<Box> parts) {
  // Parts that hold each element once have the volume of the whole, in every region of it.
  std::int64_t missing = whole.extent.count();
  std::erase_if(parts, [](const Box& part) { return part.empty(); });
  for (const Box& part : parts) {
    if (part.extent.count() > missing) return false;
    missing -= part.extent.count();
  }
  if (missing > 0) return false;
  const auto [dim, at] = choose_cut(whole, parts);
  if (dim < 0) return true;
  Box low = whole, high = whole;
  low.extent[dim] = at - whole.begin[dim];
  high.begin[dim] = at;
  high.extent[dim] = whole.end(dim) - at;
  for (const Box& half : {low, high}) {
    std::vector<Box> inside;
    for (const Box& part : parts) inside.push_back(intersect(part, half));
    if (!make_up(half, std::move(inside))) return false;
  }
  return true;
}

}  // namespace jigsaw::inline array
