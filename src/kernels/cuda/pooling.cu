#include "array/raw_memory.h"
#include "kernels/cuda/field.cuh"
#include "kernels/front/pooling_kernels.h"

namespace jigsaw::inline kernels::cuda {

namespace {

/// Places of a pooling's window over x, of which only a region holds points.
struct Places {
  FieldPlaces x, y;
  WindowPlaces window;
  Three begin, extent;
  bool count_padding;

  __device__ bool valid(const std::int64_t (&point)[3]) const {
    bool inside = true;
    for (int dim = 0; dim < 3; ++dim) {
      inside = inside && point[dim] >= begin[dim] && point[dim] < begin[dim] + extent[dim];
    }
    return inside;
  }
  /// What the sum of a window's points is divided by.
  __device__ double divisor(const std::int64_t (&place)[3]) const {
    if (count_padding) return static_cast<double>(window.taps);
    std::int64_t count = 1;
    for (int dim = 0; dim < 3; ++dim) {
      // Taps from the first to the last that reads a valid point.
      const std::int64_t step = window.dilation[dim], before = begin[dim] - place[dim] * window.stride[dim];
      const std::int64_t behind = before + extent[dim] - 1;
      const std::int64_t first = before > 0 ? (before + step - 1) / step : 0;
      const std::int64_t end = behind < 0 ? 0 : behind / step + 1;
      const std::int64_t last = end < window.extent[dim] ? end : window.extent[dim];
      count *= last > first ? last - first : 0;
    }
    return static_cast<double>(count > 0 ? count : 1);
  }
};

Places places_of(const Pooling& pooling, const Shape& x, const Shape& y) {
  return {field_places(x),
          field_places(y),
          window_places(pooling.window, {}),
          three(pooling.valid.begin, 0),
          three(pooling.valid.extent, 1),
          pooling.count_padding};
}

template <typename T>
struct MaxForward {
  Places places;
  const Element<T>* x;
  AnyElements winners;
  Element<T>* y;
  __device__ void operator()(std::int64_t i) const {
    using R = Accumulator<T>;
    const std::int64_t channel = i % places.y.channels;
    std::int64_t place[3], point[3];
    const std::int64_t sample = places.y.split(i / places.y.channels, place);
    R best = -static_cast<R>(INFINITY);
    std::int64_t winner = 0;
    bool first = true;
    for (std::int64_t tap = 0; tap < places.window.taps; ++tap) {
      places.window.read(place, tap, point);
      if (!places.valid(point)) continue;
      const R value = load<R>(x[places.x.point(sample, point) * places.x.channels + channel]);
      if (first || value > best || (value != value && best == best)) {
        best = value;
        winner = tap;
      }
      first = false;
    }
    y[i] = stored<Element<T>>(best);
    winners.put(i, static_cast<float>(winner));
  }
};

/// Each point gathers from the places whose window reads it.
template <typename T>
struct MaxBackward {
  Places places;
  const Element<T>* dy;
  AnyElements winners;
  Element<T>* dx;
  __device__ void operator()(std::int64_t i) const {
    const std::int64_t channel = i % places.x.channels;
    std::int64_t place[3], point[3];
    const std::int64_t sample = places.x.split(i / places.x.channels, point);
    double sum = 0;  // a point may stand in as many windows as there are
    for (std::int64_t tap = places.window.taps - 1; places.valid(point) && tap >= 0; --tap) {
      if (!places.window.place_of(point, tap, place) || !places.y.inside(place)) continue;
      const std::int64_t at = places.y.point(sample, place) * places.y.channels + channel;
      if (winners.get<float>(at) == static_cast<float>(tap)) sum += load<double>(dy[at]);
    }
    dx[i] = stored<Element<T>>(sum);
  }
};

template <typename T>
struct AverageForward {
  Places places;
  const Element<T>* x;
  Element<T>* y;
  __device__ void operator()(std::int64_t i) const {
    const std::int64_t channel = i % places.y.channels;
    std::int64_t place[3], point[3];
    const std::int64_t sample = places.y.split(i / places.y.channels, place);
    double sum = 0;  // a window may be a whole grid
    for (std::int64_t tap = 0; tap < places.window.taps; ++tap) {
      places.window.read(place, tap, point);
      if (places.valid(point))
        sum += load<double>(x[places.x.point(sample, point) * places.x.channels + channel]);
    }
    y[i] = stored<Element<T>>(sum / places.divisor(place));
  }
};

template <typename T>
struct AverageBackward {
  Places places;
  const Element<T>* dy;
  Element<T>* dx;
  __device__ void operator()(std::int64_t i) const {
    using R = Accumulator<T>;
    const std::int64_t channel = i % places.x.channels;
    std::int64_t place[3], point[3];
    const std::int64_t sample = places.x.split(i / places.x.channels, point);
    double sum = 0;
    for (std::int64_t tap = places.window.taps - 1; places.valid(point) && tap >= 0; --tap) {
      if (!places.window.place_of(point, tap, place) || !places.y.inside(place)) continue;
      const std::int64_t at = places.y.point(sample, place) * places.y.channels + channel;
      sum += static_cast<double>(load<R>(dy[at]) / static_cast<R>(places.divisor(place)));
    }
    dx[i] = stored<Element<T>>(sum);
  }
};

class PoolingOnDevice : public PoolingKernels {
 public:
  void max_forward(Context& context, const Pooling& pooling, const Array& x, Array& winners,
                   Array& y) const override {
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_elements(context, y.count(),
                   MaxForward<T>{places_of(pooling, x.shape(), y.shape()), elements<T>(x),
                                 any_elements(winners), elements<T>(y)});
    });
  }

  void max_backward(Context& context, const Pooling& pooling, const Array& dy, const Array& winners,
                    Array& dx) const override {
    visit(dy.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_elements(context, dx.count(),
                   MaxBackward<T>{places_of(pooling, dx.shape(), dy.shape()), elements<T>(dy),
                                  any_elements(winners), elements<T>(dx)});
    });
  }

  void average_forward(Context& context, const Pooling& pooling, const Array& x, Array& y) const override {
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_elements(
          context, y.count(),
          AverageForward<T>{places_of(pooling, x.shape(), y.shape()), elements<T>(x), elements<T>(y)});
    });
  }

  void average_backward(Context& context, const Pooling& pooling, const Array& dy, Array& dx) const override {
    visit(dy.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_elements(
          context, dx.count(),
          AverageBackward<T>{places_of(pooling, dx.shape(), dy.shape()), elements<T>(dy), elements<T>(dx)});
    });
  }
};

}  // namespace

template <>
const PoolingKernels& kernels() {
  static const PoolingOnDevice instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::cuda
