#pragma once
#include <algorithm>
#include <vector>

#include "fields/data_options.h"

namespace jigsaw::inline images {

/// Position of a dim, or -1.
inline int dim_position(const std::vector<ImageDim>& dims, ImageDim dim) {
  const auto found = std::find(dims.begin(), dims.end(), dim);
  return found == dims.end() ? -1 : static_cast<int>(found - dims.begin());
}

/// Positions of the spatial dims in the order of fields.
inline std::vector<int> spatial_positions(const std::vector<ImageDim>& dims) {
  std::vector<int> result;
  for (const ImageDim dim : {ImageDim::kDepth, ImageDim::kHeight, ImageDim::kWidth}) {
    if (const int at = dim_position(dims, dim); at >= 0) result.push_back(at);
  }
  return result;
}

}  // namespace jigsaw::inline images
