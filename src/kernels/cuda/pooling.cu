#include <algorithm>
#include <numeric>
#include <vector>

#include "array/raw_memory.h"
#include "kernels/cuda/constants.h"
#include "kernels/cuda/field.cuh"
#include "kernels/cuda/packet.cuh"
#include "kernels/front/pooling_kernels.h"

namespace jigsaw::inline kernels::cuda {

namespace {

/// The members of an element along one dim: the `count` elements of the other field that it is made of. The
/// first has number `index` along the dim, offset `at` in the field, and tap `tap` of the window. Offsets and
/// taps of the three dims add up.
struct alignas(16) Members {
  std::int64_t at = 0, tap = 0, count = 0, index = 0;
};

/// The field that is computed, the members for each coordinate along each of its dims, and the steps from one
/// member to the next.
struct Gather {
  FieldPlaces made;
  std::int64_t sample = 0;  ///< elements of a sample of the other field
  const Members* members[3] = {};
  Three at_step, tap_step, index_step;

  /// Calls f(tap, element of the other field, its place) for all members, in row-major order of places; loads
  /// of kTogether calls are under way at a time.
  template <int kTogether, typename F>
  __device__ void for_members(std::int64_t in, const std::int64_t (&place)[3], std::int64_t channel,
                              const F& f) const {
    const Members d = members[0][place[0]], h = members[1][place[1]], w = members[2][place[2]];
    const std::int64_t first = in * sample + channel;
    std::int64_t index[3];
    for (std::int64_t i = 0; i < d.count; ++i) {
      index[0] = d.index + i * index_step[0];
      for (std::int64_t j = 0; j < h.count; ++j) {
        index[1] = h.index + j * index_step[1];
        std::int64_t at = first + d.at + i * at_step[0] + h.at + j * at_step[1] + w.at,
                     tap = d.tap + i * tap_step[0] + h.tap + j * tap_step[1] + w.tap;
        index[2] = w.index;
#pragma unroll kTogether
        for (std::int64_t k = 0; k < w.count; ++k) {
          f(tap, at, index);
          at += at_step[2], tap += tap_step[2], index[2] += index_step[2];
        }
      }
    }
  }
};

/// What the sum of a window's points is divided by.
struct Divisors {
  const Members* points[3] = {};  ///< valid ones, by place
  std::int64_t taps = 0;          ///< of all windows; 0: valid points count

  __device__ double at(const std::int64_t (&place)[3]) const {
    if (taps > 0) return static_cast<double>(taps);
    std::int64_t count = 1;
    for (int dim = 0; dim < 3; ++dim) count *= points[dim][place[dim]].count;
    return static_cast<double>(count > 0 ? count : 1);
  }
};

/// A pooling along one dim: valid points are [begin, end) of `points`.
struct Axis {
  std::int64_t window, stride, dilation, begin, end, points, places;

  /// From a place that reads a point to the next.
  std::int64_t place_step() const { return dilation / std::gcd(stride, dilation); }
  std::int64_t tap_step() const { return -(stride / std::gcd(stride, dilation)); }

  /// The valid points of the window at each place.
  std::vector<Members> points_of_places() const {
    std::vector<Members> all(static_cast<std::size_t>(places));
    for (std::int64_t place = 0; place < places; ++place) {
      const std::int64_t from = place * stride, before = std::max<std::int64_t>(begin - from, 0),
                         within = std::max<std::int64_t>(end - from, 0);
      const std::int64_t first = (before + dilation - 1) / dilation,
                         last = std::min(window, (within + dilation - 1) / dilation);
      if (first >= last) continue;
      all[static_cast<std::size_t>(place)] = {
          .tap = first, .count = last - first, .index = from + first * dilation};
    }
    return all;
  }
  /// The places whose windows read each point; none read one that is not valid.
  std::vector<Members> places_of_points() const {
    std::vector<Members> all(static_cast<std::size_t>(points));
    const std::int64_t reach = (window - 1) * dilation;
    for (std::int64_t point = begin; point < end; ++point) {
      std::int64_t first = point > reach ? (point - reach + stride - 1) / stride : 0;
      const std::int64_t last = std::min(point / stride, places - 1);
      while (first <= last && (point - first * stride) % dilation != 0) ++first;
      if (first > last) continue;
      all[static_cast<std::size_t>(point)] = {.tap = (point - first * stride) / dilation,
                                              .count = (last - first) / place_step() + 1,
                                              .index = first};
    }
    return all;
  }
};

enum class Direction { kForward, kBackward };

/// The tables are small, and equal at every step.
Gather gather_of(Context& context, const Pooling& pooling, const Shape& x, const Shape& y,
                 Direction direction) {
  const bool forward = direction == Direction::kForward;
  const FieldPlaces points = field_places(x), places = field_places(y), &other = forward ? points : places;
  const WindowPlaces window = window_places(pooling.window, {});
  const Three begin = three(pooling.valid.begin, 0), extent = three(pooling.valid.extent, 1);
  Gather all{forward ? places : points, other.points * other.channels};
  const Three elements = strides_of(other);
  std::int64_t taps = 1;  // from one to the next along the dim
  for (int dim = 2; dim >= 0; --dim) {
    const Axis axis{window.extent.d[dim],         window.stride.d[dim], window.dilation.d[dim], begin.d[dim],
                    begin.d[dim] + extent.d[dim], points.space.d[dim],  places.space.d[dim]};
    std::vector<Members> members = forward ? axis.points_of_places() : axis.places_of_points();
    for (Members& each : members) each.at = each.index * elements.d[dim], each.tap *= taps;
    all.members[dim] = constants(context, std::span<const Members>(members));
    all.index_step.d[dim] = forward ? axis.dilation : axis.place_step();
    all.at_step.d[dim] = all.index_step.d[dim] * elements.d[dim];
    all.tap_step.d[dim] = (forward ? 1 : axis.tap_step()) * taps;
    taps *= axis.window;
  }
  return all;
}

/// @param forward  of the same pooling.
Divisors divisors_of(const Pooling& pooling, const Gather& forward) {
  Divisors all;
  std::copy_n(forward.members, 3, all.points);
  if (pooling.count_padding) all.taps = pooling.window.extent.count();
  return all;
}

template <typename T>
struct MaxForward {
  using R = Accumulator<T>;
  static constexpr int kCount = kPacket<Element<T>>;
  Gather points;
  const Element<T>* x;
  AnyElements winners;
  Element<T>* y;
  bool fits() const {
    return points.made.channels % kCount == 0 && begin_packets<kCount>(x, y) &&
           begin_packets<kCount>(winners);
  }
  template <int kOnce>
  __device__ void at(std::int64_t i) const {
    std::int64_t place[3], channel;
    const std::int64_t sample = points.made.split(i, place, channel);
    R best[kOnce];
    float winner[kOnce] = {};
    for (int k = 0; k < kOnce; ++k) best[k] = -static_cast<R>(INFINITY);
    bool first = true;
    points.for_members<2>(sample, place, channel, [&](std::int64_t tap, std::int64_t from, const auto&) {
      R value[kOnce];
      read_packet(x, from, value);
      for (int k = 0; k < kOnce; ++k) {
        if (first || value[k] > best[k] || (value[k] != value[k] && best[k] == best[k])) {
          best[k] = value[k];
          winner[k] = static_cast<float>(tap);
        }
      }
      first = false;
    });
    write_packet(y, i, best);
    write_packet(winners, i, winner);
  }
};

/// Each point gathers from the places whose window reads it.
template <typename T>
struct MaxBackward {
  static constexpr int kCount = kPacket<Element<T>>;
  Gather places;
  const Element<T>* dy;
  AnyElements winners;
  Element<T>* dx;
  bool fits() const {
    return places.made.channels % kCount == 0 && begin_packets<kCount>(dy, dx) &&
           begin_packets<kCount>(winners);
  }
  template <int kOnce>
  __device__ void at(std::int64_t i) const {
    std::int64_t point[3], channel;
    const std::int64_t sample = places.made.split(i, point, channel);
    double sum[kOnce] = {};  // a point may stand in as many windows as there are
    places.for_members<1>(sample, point, channel, [&](std::int64_t tap, std::int64_t from, const auto&) {
      float winner[kOnce];
      double slope[kOnce];
      read_packet(winners, from, winner);
      read_packet(dy, from, slope);
      for (int k = 0; k < kOnce; ++k) {
        if (winner[k] == static_cast<float>(tap)) sum[k] += slope[k];
      }
    });
    write_packet(dx, i, sum);
  }
};

template <typename T>
struct AverageForward {
  static constexpr int kCount = kPacket<Element<T>>;
  Gather points;
  Divisors divisors;
  const Element<T>* x;
  Element<T>* y;
  bool fits() const { return points.made.channels % kCount == 0 && begin_packets<kCount>(x, y); }
  template <int kOnce>
  __device__ void at(std::int64_t i) const {
    std::int64_t place[3], channel;
    const std::int64_t sample = points.made.split(i, place, channel);
    double sum[kOnce] = {};  // a window may be a whole grid
    points.for_members<2>(sample, place, channel, [&](std::int64_t, std::int64_t from, const auto&) {
      double value[kOnce];
      read_packet(x, from, value);
      for (int k = 0; k < kOnce; ++k) sum[k] += value[k];
    });
    const double divisor = divisors.at(place);
    for (int k = 0; k < kOnce; ++k) sum[k] /= divisor;
    write_packet(y, i, sum);
  }
};

template <typename T>
struct AverageBackward {
  using R = Accumulator<T>;
  static constexpr int kCount = kPacket<Element<T>>;
  Gather places;
  Divisors divisors;
  const Element<T>* dy;
  Element<T>* dx;
  bool fits() const { return places.made.channels % kCount == 0 && begin_packets<kCount>(dy, dx); }
  template <int kOnce>
  __device__ void at(std::int64_t i) const {
    std::int64_t point[3], channel;
    const std::int64_t sample = places.made.split(i, point, channel);
    double sum[kOnce] = {};
    places.for_members<1>(sample, point, channel, [&](std::int64_t, std::int64_t from, const auto& place) {
      const R divisor = static_cast<R>(divisors.at(place));
      R slope[kOnce];
      read_packet(dy, from, slope);
      for (int k = 0; k < kOnce; ++k) sum[k] += static_cast<double>(slope[k] / divisor);
    });
    write_packet(dx, i, sum);
  }
};

class PoolingOnDevice : public PoolingKernels {
 public:
  void max_forward(Context& context, const Pooling& pooling, const Array& x, Array& winners,
                   Array& y) const override {
    const Gather points = gather_of(context, pooling, x.shape(), y.shape(), Direction::kForward);
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_packets(context, y.count(),
                  MaxForward<T>{points, elements<T>(x), any_elements(winners), elements<T>(y)});
    });
  }

  void max_backward(Context& context, const Pooling& pooling, const Array& dy, const Array& winners,
                    Array& dx) const override {
    const Gather places = gather_of(context, pooling, dx.shape(), dy.shape(), Direction::kBackward);
    visit(dy.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_packets(context, dx.count(),
                  MaxBackward<T>{places, elements<T>(dy), any_elements(winners), elements<T>(dx)});
    });
  }

  void average_forward(Context& context, const Pooling& pooling, const Array& x, Array& y) const override {
    const Gather points = gather_of(context, pooling, x.shape(), y.shape(), Direction::kForward);
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_packets(context, y.count(),
                  AverageForward<T>{points, divisors_of(pooling, points), elements<T>(x), elements<T>(y)});
    });
  }

  void average_backward(Context& context, const Pooling& pooling, const Array& dy, Array& dx) const override {
    const Gather points = gather_of(context, pooling, dx.shape(), dy.shape(), Direction::kForward),
                 places = gather_of(context, pooling, dx.shape(), dy.shape(), Direction::kBackward);
    visit(dy.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_packets(context, dx.count(),
                  AverageBackward<T>{places, divisors_of(pooling, points), elements<T>(dy), elements<T>(dx)});
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
