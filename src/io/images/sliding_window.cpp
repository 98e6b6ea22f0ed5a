#include "images/sliding_window.h"

#include <algorithm>
#include <cmath>

namespace jigsaw::inline images {

namespace {

constexpr double kSigmaOfExtent = 0.125, kLeastImportance = 1e-3;

}  // namespace

void append_dim(Box& box, std::int64_t begin, std::int64_t extent) {
  box.begin.append(0);
  box.begin[box.begin.rank() - 1] = begin;
  box.extent.append(extent);
}

std::vector<std::int64_t> window_begins(std::int64_t extent, std::int64_t begin, std::int64_t end,
                                        std::int64_t window, double overlap) {
  const std::int64_t length = end - begin;
  if (length <= window) {
    const std::int64_t centred = begin - (window - length) / 2;
    return {extent < window ? centred : std::clamp<std::int64_t>(centred, 0, extent - window)};
  }
  const auto step = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(std::floor(static_cast<double>(window) * (1 - overlap))));
  std::vector<std::int64_t> begins;
  for (std::int64_t at = 0; at < length - window; at += step) begins.push_back(begin + at);
  begins.push_back(end - window);
  return begins;
}

std::vector<ImageWindow> windows_over(const std::vector<ImageRegion>& regions,
                                      const std::vector<Shape>& extents, const Shape& window,
                                      double overlap) {
  std::vector<ImageWindow> all;
  for (std::size_t r = 0; r < regions.size(); ++r) {
    std::vector<ImageWindow> windows = {{r, regions[r].image, {}}};
    for (int d = 0; d < window.rank(); ++d) {
      const std::vector<std::int64_t> begins =
          window_begins(extents[r][d], regions[r].box.begin[d], regions[r].box.end(d), window[d], overlap);
      std::vector<ImageWindow> longer;
      for (const ImageWindow& so_far : windows) {
        for (const std::int64_t begin : begins) {
          longer.push_back(so_far);
          append_dim(longer.back().box, begin, window[d]);
        }
      }
      windows = std::move(longer);
    }
    all.insert(all.end(), windows.begin(), windows.end());
  }
  return all;
}

std::vector<ImageWindow> with_mirrored(const std::vector<ImageWindow>& windows, unsigned dims) {
  std::vector<ImageWindow> all;
  for (ImageWindow window : windows) {
    for (unsigned mirrored = 0; mirrored <= dims; ++mirrored) {
      if ((mirrored & ~dims) != 0) continue;
      window.mirrored = mirrored;
      all.push_back(window);
    }
  }
  return all;
}

std::vector<double> gaussian_importance(const Shape& window) {
  std::vector<double> all = {1.0};
  for (const std::int64_t extent : window) {
    std::vector<double> longer;
    longer.reserve(all.size() * static_cast<std::size_t>(extent));
    for (const double so_far : all) {
      for (std::int64_t i = 0; i < extent; ++i) {
        const double distance = (static_cast<double>(i) - static_cast<double>(extent - 1) / 2) /
                                (kSigmaOfExtent * static_cast<double>(extent));
        longer.push_back(so_far * std::exp(-0.5 * distance * distance));
      }
    }
    all = std::move(longer);
  }
  for (double& importance : all) importance = std::max(importance, kLeastImportance);
  return all;
}

}  // namespace jigsaw::inline images
