#include "array/raw_memory.h"
#include "kernels/cuda/device.cuh"
#include "kernels/front/relative_bias_kernels.h"

namespace jigsaw::inline kernels::cuda {

namespace {

struct WindowExtents {
  int rank = 0;
  std::int64_t extent[Shape::kMaxRank] = {}, points = 1;
};

WindowExtents window_of(const Shape& shape) {
  WindowExtents window;
  window.rank = shape.rank();
  for (int dim = 0; dim < shape.rank(); ++dim) window.extent[dim] = shape[dim];
  window.points = shape.count();
  return window;
}

/// bias[head, query, key] = table[row of query − key, head].
struct SpreadTable {
  WindowExtents window;
  std::int64_t heads;
  AnyElements table, bias;
  __device__ void operator()(std::int64_t i) const {
    const std::int64_t head = i / (window.points * window.points);
    std::int64_t key = i % window.points, query = i / window.points % window.points;
    std::int64_t row = 0, stride = 1;
    for (int dim = window.rank - 1; dim >= 0; --dim) {
      const std::int64_t extent = window.extent[dim];
      row += (query % extent - key % extent + extent - 1) * stride;
      stride *= 2 * extent - 1;
      query /= extent;
      key /= extent;
    }
    bias.put(i, table.get<double>(row * heads + head));
  }
};

/// table[row, head] = Σ over the pairs of points that lie so to each other, in float64.
struct GatherTable {
  WindowExtents window;
  std::int64_t heads;
  AnyElements dbias, table;
  __device__ void operator()(std::int64_t i) const {
    const std::int64_t row = i / heads, head = i % heads;
    double sum = 0;
    for (std::int64_t query = 0; query < window.points; ++query) {
      std::int64_t key = 0, stride = 1, rest = row, point = query;
      bool inside = true;
      for (int dim = window.rank - 1; dim >= 0; --dim) {
        const std::int64_t extent = window.extent[dim];
        const std::int64_t apart = rest % (2 * extent - 1) - (extent - 1);
        const std::int64_t at = point % extent - apart;
        inside = inside && at >= 0 && at < extent;
        key += at * stride;
        stride *= extent;
        rest /= 2 * extent - 1;
        point /= extent;
      }
      if (inside) sum += dbias.get<double>((head * window.points + query) * window.points + key);
    }
    table.put(i, sum);
  }
};

struct Wrapped {
  WindowExtents window;
  std::int64_t count[Shape::kMaxRank] = {}, begin[Shape::kMaxRank] = {}, seam[Shape::kMaxRank] = {};

  /// On which side of the ends of the wrapped dims a point of a window lies, a bit per dim.
  __device__ int side_of(std::int64_t number, std::int64_t point) const {
    int side = 0;
    for (int dim = window.rank - 1; dim >= 0; --dim) {
      const std::int64_t extent = window.extent[dim];
      const std::int64_t at = begin[dim] + number % count[dim] * extent + point % extent;
      side = 2 * side + (at >= seam[dim] ? 1 : 0);
      number /= count[dim];
      point /= extent;
    }
    return side;
  }
};

struct WriteMask {
  Wrapped wrapped;
  AnyElements mask;
  __device__ void operator()(std::int64_t i) const {
    const std::int64_t points = wrapped.window.points, number = i / points / points;
    const bool alike = wrapped.side_of(number, i / points % points) == wrapped.side_of(number, i % points);
    mask.put(i, alike ? 0.0 : -static_cast<double>(INFINITY));
  }
};

class RelativeBias : public RelativeBiasKernels {
 public:
  void forward(Context& context, const Array& table, const Shape& window, Array& bias) const override {
    for_elements(context, bias.count(),
                 SpreadTable{window_of(window), table.shape()[1], any_elements(table), any_elements(bias)});
  }

  void backward(Context& context, const Array& dbias, const Shape& window, Array& table) const override {
    for_elements(context, table.count(),
                 GatherTable{window_of(window), table.shape()[1], any_elements(dbias), any_elements(table)});
  }

  void wrap_mask(Context& context, const WrappedWindows& windows, Array& mask) const override {
    Wrapped wrapped;
    wrapped.window = window_of(windows.window);
    for (int dim = 0; dim < windows.window.rank(); ++dim) {
      wrapped.count[dim] = windows.piece.extent[dim] / windows.window[dim];
      wrapped.begin[dim] = windows.piece.begin[dim];
      wrapped.seam[dim] = windows.space[dim] - windows.wrapped[dim];
    }
    for_elements(context, mask.count(), WriteMask{wrapped, any_elements(mask)});
  }
};

}  // namespace

template <>
const RelativeBiasKernels& kernels() {
  static const RelativeBias instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::cuda
