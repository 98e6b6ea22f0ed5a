#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "array/box.h"

namespace jigsaw::inline images {

/// A part of an image.
struct ImageRegion {
  std::int64_t image = 0;
  Box box;
};

/// What a model sees at a time of a region: a box of the image, beyond which it may reach where the image is
/// smaller than the model's grid.
struct ImageWindow {
  std::size_t region = 0;  ///< its number
  std::int64_t image = 0;
  Box box;
  unsigned mirrored = 0;  ///< bit d: the model sees it mirrored along spatial dim d
};

/// One more dim of a box, which may begin before 0, as a window does that is larger than its image.
void append_dim(Box& box, std::int64_t begin, std::int64_t extent);

/// Begins of the windows over [begin, end) of an image of `extent` points along one dim, as
/// monai.inferers.sliding_window_inference has them: ⌊window · (1 − overlap)⌋ apart, but at least 1, the last
/// one up to the end. A shorter region has one window in its middle, within the image where the image is at
/// least as long.
std::vector<std::int64_t> window_begins(std::int64_t extent, std::int64_t begin, std::int64_t end,
                                        std::int64_t window, double overlap);

/// The windows over regions, the first dim slowest.
///
/// @param extents  of the image of each region. @param overlap  0 up to below 1.
std::vector<ImageWindow> windows_over(const std::vector<ImageRegion>& regions,
                                      const std::vector<Shape>& extents, const Shape& window, double overlap);

/// Each window as it is, and mirrored along every combination of the dims whose bits are set.
std::vector<ImageWindow> with_mirrored(const std::vector<ImageWindow>& windows, unsigned dims);

/// What a point of a window counts, row-major: exp(−½ Σ_d (x_d − (n_d − 1)/2)² / (n_d/8)²) over dims of n_d
/// points, but at least 0.001 (monai.data.utils.compute_importance_map, mode gaussian, sigma_scale 0.125).
std::vector<double> gaussian_importance(const Shape& window);

}  // namespace jigsaw::inline images
