#include "init/first_levels.h"

#include <algorithm>
#include <limits>

#include "base/text.h"

namespace jigsaw::inline init {

namespace {

constexpr int kMostHalvedLevels = 4;
constexpr std::int64_t kLeastHalvedPoints = 4;

/// Which axes are halved for the next level.
Shape next_stride(const Shape& extents, const std::vector<double>& spacing) {
  constexpr double kMuchFarther = 2;
  double finest = std::numeric_limits<double>::infinity();
  for (int d = 0; d < extents.rank(); ++d)
    if (extents[d] >= 2 * kLeastHalvedPoints) finest = std::min(finest, spacing[static_cast<std::size_t>(d)]);
  Shape stride = Shape::filled(extents.rank(), 1);
  int halved = 0, last = 0;
  for (int d = 0; d < extents.rank(); ++d) {
    const bool is_far = spacing[static_cast<std::size_t>(d)] >= kMuchFarther * finest;
    if (extents[d] < 2 * kLeastHalvedPoints || is_far) continue;
    stride[d] = 2;
    last = d;
    ++halved;
  }
  if (halved == 1 && extents.rank() > 1 && extents[last] < 3 * kLeastHalvedPoints) stride[last] = 1;
  return stride;
}

}  // namespace

std::string FirstLevels::strides_text() const {
  std::vector<std::string> texts;
  for (const Shape& stride : strides) {
    const bool even = std::ranges::all_of(stride, [&](std::int64_t points) { return points == stride[0]; });
    texts.push_back(even ? concat(stride[0]) : concat("[", join(stride, ", "), "]"));
  }
  return concat("[", join(texts, ", "), "]");
}

FirstLevels even_levels(const Shape& space) {
  const std::int64_t least = *std::ranges::min_element(space);
  FirstLevels levels;
  while (levels.count < kMostHalvedLevels && least >> levels.count >= kLeastHalvedPoints) ++levels.count;
  return levels;
}

FirstLevels levels_by_axis(const Shape& space, std::vector<double> spacing) {
  if (std::ssize(spacing) != space.rank()) spacing.assign(static_cast<std::size_t>(space.rank()), 1.0);
  FirstLevels levels;
  levels.strides = {Shape::filled(space.rank(), 1)};
  Shape extents = space;
  for (; levels.count < kMostHalvedLevels; ++levels.count) {
    const Shape stride = next_stride(extents, spacing);
    if (stride.count() == 1) break;
    for (int d = 0; d < extents.rank(); ++d) {
      extents[d] /= stride[d];
      spacing[static_cast<std::size_t>(d)] *= static_cast<double>(stride[d]);
    }
    levels.strides.push_back(stride);
  }
  const Shape twice = Shape::filled(space.rank(), 2);
  if (std::all_of(levels.strides.begin() + 1, levels.strides.end(),
                  [&](const Shape& stride) { return stride == twice; }))
    levels.strides.clear();
  return levels;
}

}  // namespace jigsaw::inline init
