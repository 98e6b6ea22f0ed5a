#include "array/raw_memory.h"
#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/column_sums.cuh"
#include "kernels/cuda/packet.cuh"
#include "kernels/front/channel_statistics_kernels.h"

namespace jigsaw::inline kernels::cuda {

namespace {

/// A field [n, points, c].
template <typename T>
struct Field {
  std::int64_t points, channels;
  const Element<T>* x;

  __device__ std::int64_t at(std::int64_t sample, std::int64_t point, std::int64_t channel) const {
    return (sample * points + point) * channels + channel;
  }
};

template <typename T>
Field<T> field_of(const Array& x) {
  return {x.shape()[1], x.shape()[2], elements<T>(x)};
}

/// Deviations from the first point, and their squares: numbers far from zero lose nothing. In float64.
template <typename T>
struct MomentTerms {
  using Part = double;
  Field<T> field;
  __device__ double first(std::int64_t sample, std::int64_t channel) const {
    return load<double>(field.x[field.at(sample, 0, channel)]);
  }
  __device__ Part read(std::int64_t sample, std::int64_t point, std::int64_t channel) const {
    return load<double>(field.x[field.at(sample, point, channel)]) - first(sample, channel);
  }
  __device__ void add(Part deviation, double (&sums)[2]) const {
    sums[0] += deviation;
    sums[1] += deviation * deviation;
  }
};

template <typename T>
struct StoredMoments {
  MomentTerms<T> of;
  Accumulator<T>*mean, *m2;
  __device__ void operator()(std::int64_t column, const double (&sums)[2]) const {
    const Field<T>& field = of.field;
    const double count = static_cast<double>(field.points), shift = count > 0 ? sums[0] / count : 0,
                 rest = count > 0 ? sums[1] - sums[0] * shift : 0,
                 first = count > 0 ? of.first(column / field.channels, column % field.channels) : 0;
    mean[column] = static_cast<Accumulator<T>>(first + shift);
    m2[column] = static_cast<Accumulator<T>>(rest < 0 ? 0 : rest);
  }
};

/// A ChannelMap; a shift of null is none.
template <typename R>
struct MapNumbers {
  const R *centre, *factor, *shift;
};

template <typename R>
MapNumbers<R> map_numbers(const ChannelMap& map) {
  return {map.centre.data<R>(), map.factor.data<R>(), map.shift.data<R>()};
}

template <typename T, Activation activation>
struct GradientTerms {
  using R = Accumulator<T>;
  Field<T> field;
  const Element<T>* dy;
  MapNumbers<R> map;

  struct Part {
    R slope, deviation, linear;
  };
  __device__ Part read(std::int64_t sample, std::int64_t point, std::int64_t channel) const {
    const std::int64_t i = field.at(sample, point, channel), column = sample * field.channels + channel;
    const R deviation = load<R>(field.x[i]) - map.centre[column];
    Part part{load<R>(dy[i]), deviation, R(0)};
    if constexpr (activation != Activation::kNone)
      part.linear = deviation * map.factor[column] + (map.shift != nullptr ? map.shift[channel] : R(0));
    return part;
  }
  __device__ void add(const Part& part, double (&sums)[2]) const {
    const R slope = part.slope * activation_derivative(activation, part.linear);
    sums[0] += static_cast<double>(slope);
    sums[1] += static_cast<double>(slope * part.deviation);
  }
};

template <typename R>
struct StoredPair {
  std::int64_t columns;
  R* to;
  __device__ void operator()(std::int64_t column, const double (&sums)[2]) const {
    to[column] = static_cast<R>(sums[0]);
    to[columns + column] = static_cast<R>(sums[1]);
  }
};

/// Finds the channels of elements, of which a packet's are neighbours.
struct Channels {
  Divisor points, channels;

  bool fit(std::int64_t count) const { return channels.by % count == 0; }
  /// Number of the sample and channel of element i, and of the channel alone.
  __device__ std::int64_t column(std::int64_t i, std::int64_t& channel) const {
    channel = take_digit(i, channels);
    return quotient(i, points) * channels.by + channel;
  }
};
Channels channels_of(const Array& x) {
  return {divisor(x.shape()[1]), divisor(x.shape()[2])};
}

/// A map's numbers for the elements of a packet.
template <typename R, int kOnce>
struct PacketMap {
  R centre[kOnce], factor[kOnce], shift[kOnce];

  __device__ PacketMap(const MapNumbers<R>& map, std::int64_t column, std::int64_t channel) {
    read_packet(map.centre, column, centre);
    read_packet(map.factor, column, factor);
    if (map.shift != nullptr) {
      read_packet(map.shift, channel, shift);
    } else {
      for (int k = 0; k < kOnce; ++k) shift[k] = R(0);
    }
  }
};

template <typename T>
struct Apply {
  using R = Accumulator<T>;
  static constexpr int kCount = kPacket<Element<T>>;
  Channels channels;
  Activation activation;
  const Element<T>* x;
  MapNumbers<R> map;
  Element<T>* y;
  bool fits() const {
    return channels.fit(kCount) && begin_packets<kCount>(x, y) &&
           begin_packets<kCount>(map.centre, map.factor, map.shift);
  }
  template <int kOnce>
  __device__ void at(std::int64_t i) const {
    std::int64_t channel = 0;
    const std::int64_t column = channels.column(i, channel);
    R value[kOnce];
    read_packet(x, i, value);
    const PacketMap<R, kOnce> numbers(map, column, channel);
    for (int k = 0; k < kOnce; ++k)
      value[k] = (value[k] - numbers.centre[k]) * numbers.factor[k] + numbers.shift[k];
    with_known(activation, [&](auto known) {
      for (int k = 0; k < kOnce; ++k) value[k] = activated(known.kValue, value[k]);
    });
    write_packet(y, i, value);
  }
};

template <typename T>
struct Gradient {
  using R = Accumulator<T>;
  static constexpr int kCount = kPacket<Element<T>>;
  Channels channels;
  Activation activation;
  const Element<T>*dy, *x;
  MapNumbers<R> map;
  const R *b, *c;
  Element<T>* dx;
  bool fits() const {
    return channels.fit(kCount) && begin_packets<kCount>(dy, x, dx) &&
           begin_packets<kCount>(map.centre, map.factor, map.shift, b, c);
  }
  template <int kOnce>
  __device__ void at(std::int64_t i) const {
    std::int64_t channel = 0;
    const std::int64_t column = channels.column(i, channel);
    R value[kOnce], slope[kOnce], of_value[kOnce], plus[kOnce];
    read_packet(x, i, value);
    read_packet(dy, i, slope);
    const PacketMap<R, kOnce> numbers(map, column, channel);
    for (int k = 0; k < kOnce; ++k) value[k] -= numbers.centre[k];
    with_known(activation, [&](auto known) {
      if constexpr (known.kValue != Activation::kNone) {
        for (int k = 0; k < kOnce; ++k)
          slope[k] *= activation_derivative(known.kValue, value[k] * numbers.factor[k] + numbers.shift[k]);
      }
    });
    read_packet(b, column, of_value);
    read_packet(c, column, plus);
    for (int k = 0; k < kOnce; ++k)
      value[k] = numbers.factor[k] * slope[k] + of_value[k] * value[k] + plus[k];
    write_packet(dx, i, value);
  }
};

class ChannelStatistics : public ChannelStatisticsKernels {
 public:
  void moments(Context& context, const Array& x, Moments& moments) const override {
    const Shape& shape = x.shape();
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      using R = Accumulator<T>;
      const MomentTerms<T> terms{field_of<T>(x)};
      column_sums<2>(context, shape[0], shape[1], shape[2], terms,
                     StoredMoments<T>{terms, moments.mean.data<R>(), moments.m2.data<R>()});
    });
  }

  void apply(Context& context, const Array& x, const ChannelMap& map, Array& y) const override {
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_packets(context, x.count(),
                  Apply<T>{channels_of(x), map.activation, elements<T>(x), map_numbers<Accumulator<T>>(map),
                           elements<T>(y)});
    });
  }

  void gradient_sums(Context& context, const Array& dy, const Array& x, const ChannelMap& map,
                     Array& sums) const override {
    const Shape& shape = x.shape();
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      using R = Accumulator<T>;
      with_activation(map.activation, [&](auto known) {
        column_sums<2>(
            context, shape[0], shape[1], shape[2],
            GradientTerms<T, decltype(known)::value>{field_of<T>(x), elements<T>(dy), map_numbers<R>(map)},
            StoredPair<R>{shape[0] * shape[2], sums.data<R>()});
      });
    });
  }

  void gradient(Context& context, const Array& dy, const Array& x, const ChannelMap& map, const Array& b,
                const Array& c, Array& dx) const override {
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      using R = Accumulator<T>;
      for_packets(context, x.count(),
                  Gradient<T>{channels_of(x), map.activation, elements<T>(dy), elements<T>(x),
                              map_numbers<R>(map), b.data<R>(), c.data<R>(), elements<T>(dx)});
    });
  }
};

}  // namespace

template <>
const ChannelStatisticsKernels& kernels() {
  static const ChannelStatistics instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::cuda
