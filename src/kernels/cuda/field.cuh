#pragma once
#include "kernels/cuda/device.cuh"
#include "kernels/field_extents.h"
#include "kernels/window.h"

namespace jigsaw::inline kernels::cuda {

/// Three numbers, one for each spatial dim.
struct Three {
  std::int64_t d[3] = {};
  __device__ std::int64_t operator[](int dim) const { return d[dim]; }
};
inline Three three(const Shape& shape, std::int64_t missing) {
  const Triple all = triple(shape, missing);
  return {{all[0], all[1], all[2]}};
}

/// A field [B, space…, C] as one of three spatial dims.
struct FieldPlaces {
  std::int64_t samples = 0, channels = 0, points = 0;  ///< points: of a sample
  Three space;
  Divisor by_channels, by_space[3];

  /// Sample and place of point number `point` of all samples.
  __device__ std::int64_t split(std::int64_t point, std::int64_t (&place)[3]) const {
    for (int dim = 2; dim >= 0; --dim) place[dim] = take_digit(point, by_space[dim]);
    return point;
  }
  /// Sample, place and channel of element number `i`.
  __device__ std::int64_t split(std::int64_t i, std::int64_t (&place)[3], std::int64_t& channel) const {
    channel = take_digit(i, by_channels);
    return split(i, place);
  }
  __device__ std::int64_t point(std::int64_t sample, const std::int64_t (&place)[3]) const {
    return ((sample * space[0] + place[0]) * space[1] + place[1]) * space[2] + place[2];
  }
  __device__ bool inside(const std::int64_t (&place)[3]) const {
    return place[0] >= 0 && place[0] < space[0] && place[1] >= 0 && place[1] < space[1] && place[2] >= 0 &&
           place[2] < space[2];
  }
};
inline FieldPlaces field_places(const Shape& shape) {
  const Three space = three(space_of(shape), 1);
  return {shape[0], shape.back(),          space.d[0] * space.d[1] * space.d[2],
          space,    divisor(shape.back()), {divisor(space.d[0]), divisor(space.d[1]), divisor(space.d[2])}};
}
/// Elements from a point to the next along each dim.
inline Three strides_of(const FieldPlaces& field) {
  const std::int64_t row = field.space.d[2] * field.channels;
  return {{field.space.d[1] * row, row, field.channels}};
}

/// A window and how it moves from places of y over points of x, which begin `low` before x's first.
struct WindowPlaces {
  Three extent, stride, dilation, low;
  std::int64_t taps = 1;

  __device__ void split(std::int64_t tap, std::int64_t (&at)[3]) const {
    for (int dim = 2; dim >= 0; --dim) {
      at[dim] = tap % extent[dim];
      tap /= extent[dim];
    }
  }
  /// The point of x that the tap reads when the window lies at a place.
  __device__ void read(const std::int64_t (&place)[3], std::int64_t tap, std::int64_t (&point)[3]) const {
    std::int64_t at[3];
    split(tap, at);
    for (int dim = 0; dim < 3; ++dim)
      point[dim] = place[dim] * stride[dim] + at[dim] * dilation[dim] - low[dim];
  }
  /// The place at which the tap reads a point; false where there is none. It may lie beyond y.
  __device__ bool place_of(const std::int64_t (&point)[3], std::int64_t tap, std::int64_t (&place)[3]) const {
    std::int64_t at[3];
    split(tap, at);
    bool found = true;
    for (int dim = 0; dim < 3; ++dim) {
      const std::int64_t from = point[dim] + low[dim] - at[dim] * dilation[dim];
      found = found && from >= 0 && from % stride[dim] == 0;
      place[dim] = from / stride[dim];
    }
    return found;
  }
};
inline WindowPlaces window_places(const Window& window, const Shape& low) {
  return {three(window.extent, 1), three(window.stride, 1), three(window.dilation, 1), three(low, 0),
          window.extent.count()};
}

}  // namespace jigsaw::inline kernels::cuda
