#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "array/shape.h"

namespace jigsaw::inline kernels {

/// The spatial extents of a field [B, space…, C].
inline Shape space_of(const Shape& field) {
  return Shape(std::span(field.begin() + 1, static_cast<std::size_t>(field.rank() - 2)));
}
/// [samples, space…, channels].
inline Shape field_shape(std::int64_t samples, const Shape& space, std::int64_t channels) {
  Shape shape{samples};
  for (const std::int64_t extent : space) shape.append(extent);
  shape.append(channels);
  return shape;
}

/// Numbers of up to three spatial dims as those of three: `missing` stands in front.
using Triple = std::array<std::int64_t, 3>;
inline Triple triple(const Shape& shape, std::int64_t missing) {
  Triple all{missing, missing, missing};
  for (int dim = 0; dim < shape.rank(); ++dim) {
    all[static_cast<std::size_t>(3 - shape.rank() + dim)] = shape[dim];
  }
  return all;
}

/// A field [B, space…, C] of 1 to 3 spatial dims seen as one of three: [B, D, H, W, C].
struct FieldExtents {
  explicit FieldExtents(const Shape& shape)
      : samples(shape[0]), space(triple(space_of(shape), 1)), channels(shape.back()) {}

  /// Number of the point (sample, d, h, w), row-major.
  std::int64_t point(std::int64_t sample, std::int64_t d, std::int64_t h, std::int64_t w) const {
    return ((sample * space[0] + d) * space[1] + h) * space[2] + w;
  }

  std::int64_t samples;
  Triple space;
  std::int64_t channels;
};

}  // namespace jigsaw::inline kernels
