#include "array/raw_memory.h"
#include "kernels/cuda/column_sums.cuh"
#include "kernels/cuda/packet.cuh"
#include "kernels/front/channel_statistics_kernels.h"

namespace jigsaw::inline kernels::cuda {

namespace {

/// A field [n, points, c] and what its channels are normalised with, [n, c].
template <typename T>
struct Field {
  using R = Accumulator<T>;
  std::int64_t points, channels;
  const Element<T>* x;
  const R* centre;

  __device__ std::int64_t at(std::int64_t sample, std::int64_t point, std::int64_t channel) const {
    return (sample * points + point) * channels + channel;
  }
  __device__ R deviation(std::int64_t i, std::int64_t column) const { return load<R>(x[i]) - centre[column]; }
};

template <typename T>
Field<T> field_of(const Array& x, const Array& centre) {
  return {x.shape()[1], x.shape()[2], elements<T>(x), centre.data<Accumulator<T>>()};
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

template <typename T>
struct GradientTerms {
  Field<T> field;
  const Element<T>* dy;

  struct Part {
    Accumulator<T> slope, deviation;
  };
  __device__ Part read(std::int64_t sample, std::int64_t point, std::int64_t channel) const {
    const std::int64_t i = field.at(sample, point, channel);
    return {load<Accumulator<T>>(dy[i]), field.deviation(i, sample * field.channels + channel)};
  }
  __device__ void add(const Part& part, double (&sums)[2]) const {
    sums[0] += static_cast<double>(part.slope);
    sums[1] += static_cast<double>(part.slope * part.deviation);
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

template <typename T>
struct Apply {
  using R = Accumulator<T>;
  static constexpr int kCount = kPacket<Element<T>>;
  Channels channels;
  const Element<T>* x;
  const R *centre, *factor, *shift;
  Element<T>* y;
  bool fits() const {
    return channels.fit(kCount) && begin_packets<kCount>(x, y) &&
           begin_packets<kCount>(centre, factor, shift);
  }
  template <int kOnce>
  __device__ void at(std::int64_t i) const {
    std::int64_t channel = 0;
    const std::int64_t column = channels.column(i, channel);
    R value[kOnce], mean[kOnce], times[kOnce], plus[kOnce];
    read_packet(x, i, value);
    read_packet(centre, column, mean);
    read_packet(factor, column, times);
    if (shift != nullptr) read_packet(shift, channel, plus);
    for (int k = 0; k < kOnce; ++k) {
      value[k] = (value[k] - mean[k]) * times[k];
      if (shift != nullptr) value[k] += plus[k];
    }
    write_packet(y, i, value);
  }
};

template <typename T>
struct Gradient {
  using R = Accumulator<T>;
  static constexpr int kCount = kPacket<Element<T>>;
  Channels channels;
  const Element<T>*dy, *x;
  const R *centre, *a, *b, *c;
  Element<T>* dx;
  bool fits() const {
    return channels.fit(kCount) && begin_packets<kCount>(dy, x, dx) && begin_packets<kCount>(centre, a, b, c);
  }
  template <int kOnce>
  __device__ void at(std::int64_t i) const {
    std::int64_t channel = 0;
    const std::int64_t column = channels.column(i, channel);
    R value[kOnce], slope[kOnce], mean[kOnce], of_slope[kOnce], of_value[kOnce], plus[kOnce];
    read_packet(x, i, value);
    read_packet(dy, i, slope);
    read_packet(centre, column, mean);
    read_packet(a, column, of_slope);
    read_packet(b, column, of_value);
    read_packet(c, column, plus);
    for (int k = 0; k < kOnce; ++k)
      value[k] = of_slope[k] * slope[k] + of_value[k] * (value[k] - mean[k]) + plus[k];
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
      const MomentTerms<T> terms{field_of<T>(x, {})};
      column_sums<2>(context, shape[0], shape[1], shape[2], terms,
                     StoredMoments<T>{terms, moments.mean.data<R>(), moments.m2.data<R>()});
    });
  }

  void apply(Context& context, const Array& x, const Array& centre, const Array& factor, const Array& shift,
             Array& y) const override {
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      using R = Accumulator<T>;
      for_packets(context, x.count(),
                  Apply<T>{channels_of(x), elements<T>(x), centre.data<R>(), factor.data<R>(),
                           shift.data<R>(), elements<T>(y)});
    });
  }

  void gradient_sums(Context& context, const Array& dy, const Array& x, const Array& centre,
                     Array& sums) const override {
    const Shape& shape = x.shape();
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      using R = Accumulator<T>;
      column_sums<2>(context, shape[0], shape[1], shape[2],
                     GradientTerms<T>{field_of<T>(x, centre), elements<T>(dy)},
                     StoredPair<R>{shape[0] * shape[2], sums.data<R>()});
    });
  }

  void gradient(Context& context, const Array& dy, const Array& x, const Array& centre, const Array& a,
                const Array& b, const Array& c, Array& dx) const override {
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      using R = Accumulator<T>;
      for_packets(context, x.count(),
                  Gradient<T>{channels_of(x), elements<T>(dy), elements<T>(x), centre.data<R>(), a.data<R>(),
                              b.data<R>(), c.data<R>(), elements<T>(dx)});
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
