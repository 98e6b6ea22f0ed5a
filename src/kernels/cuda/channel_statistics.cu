#include "array/raw_memory.h"
#include "kernels/cuda/column_sums.cuh"
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
  /// Number of the sample and channel of element i.
  __device__ std::int64_t column(std::int64_t i) const {
    return i / channels / points * channels + i % channels;
  }
  __device__ R deviation(std::int64_t i, std::int64_t column) const { return load<R>(x[i]) - centre[column]; }
};

template <typename T>
Field<T> field_of(const Array& x, const Array& centre) {
  return {x.shape()[1], x.shape()[2], elements<T>(x), centre.data<Accumulator<T>>()};
}

template <typename T>
struct ValueTerms {
  using Part = Element<T>;
  Field<T> field;
  __device__ Part read(std::int64_t sample, std::int64_t point, std::int64_t channel) const {
    return field.x[field.at(sample, point, channel)];
  }
  __device__ void add(Part part, double (&sums)[1]) const { sums[0] += load<double>(part); }
};

/// Squared deviations from a mean in float64.
template <typename T>
struct SquareTerms {
  using Part = double;
  Field<T> field;
  const double* mean;
  __device__ Part read(std::int64_t sample, std::int64_t point, std::int64_t channel) const {
    return load<double>(field.x[field.at(sample, point, channel)]) - mean[sample * field.channels + channel];
  }
  __device__ void add(Part deviation, double (&sums)[1]) const { sums[0] += deviation * deviation; }
};

template <typename R>
struct Mean {
  std::int64_t points;
  double* wide;
  R* mean;
  __device__ void operator()(std::int64_t column, const double (&sums)[1]) const {
    wide[column] = points > 0 ? sums[0] / static_cast<double>(points) : 0.0;
    mean[column] = static_cast<R>(wide[column]);
  }
};

template <typename R>
struct StoredSum {
  R* to;
  __device__ void operator()(std::int64_t column, const double (&sums)[1]) const {
    to[column] = static_cast<R>(sums[0]);
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

template <typename T>
struct Apply {
  Field<T> field;
  const Accumulator<T>*factor, *shift;
  Element<T>* y;
  __device__ void operator()(std::int64_t i) const {
    const std::int64_t column = field.column(i);
    auto value = field.deviation(i, column) * factor[column];
    if (shift != nullptr) value += shift[i % field.channels];
    y[i] = stored<Element<T>>(value);
  }
};

template <typename T>
struct Gradient {
  Field<T> field;
  const Element<T>* dy;
  const Accumulator<T>*a, *b, *c;
  Element<T>* dx;
  __device__ void operator()(std::int64_t i) const {
    using R = Accumulator<T>;
    const std::int64_t column = field.column(i);
    dx[i] =
        stored<Element<T>>(a[column] * load<R>(dy[i]) + b[column] * field.deviation(i, column) + c[column]);
  }
};

class ChannelStatistics : public ChannelStatisticsKernels {
 public:
  void moments(Context& context, const Array& x, Moments& moments) const override {
    const Shape& shape = x.shape();
    Array wide(context, moments.mean.shape(), DType::kFloat64, Purpose::kWorkspace);
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      using R = Accumulator<T>;
      const Field<T> field = field_of<T>(x, {});
      column_sums<1>(context, shape[0], shape[1], shape[2], ValueTerms<T>{field},
                     Mean<R>{shape[1], wide.data<double>(), moments.mean.data<R>()});
      column_sums<1>(context, shape[0], shape[1], shape[2], SquareTerms<T>{field, wide.data<double>()},
                     StoredSum<R>{moments.m2.data<R>()});
    });
  }

  void apply(Context& context, const Array& x, const Array& centre, const Array& factor, const Array& shift,
             Array& y) const override {
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      using R = Accumulator<T>;
      for_elements(context, x.count(),
                   Apply<T>{field_of<T>(x, centre), factor.data<R>(), shift.data<R>(), elements<T>(y)});
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
      for_elements(context, x.count(),
                   Gradient<T>{field_of<T>(x, centre), elements<T>(dy), a.data<R>(), b.data<R>(), c.data<R>(),
                               elements<T>(dx)});
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
