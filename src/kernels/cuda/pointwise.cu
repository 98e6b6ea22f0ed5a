#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/column_sums.cuh"
#include "kernels/cuda/conversion.h"
#include "kernels/cuda/packet.cuh"
#include "kernels/cuda/random.cuh"
#include "kernels/front/pointwise_kernels.h"

namespace jigsaw::inline kernels::cuda {

namespace {

/// Functions of elements for for_packets(); extended lambdas would need a compiler flag.
template <typename T>
struct Sum {
  static constexpr int kCount = kPacket<Element<T>>;
  const Element<T>*a, *b;
  Element<T>* y;
  bool fits() const { return begin_packets<kCount>(a, b, y); }
  template <int kOnce>
  __device__ void at(std::int64_t i) const {
    Accumulator<T> sum[kOnce], term[kOnce];
    read_packet(a, i, sum);
    read_packet(b, i, term);
    for (int k = 0; k < kOnce; ++k) sum[k] += term[k];
    write_packet(y, i, sum);
  }
};

template <typename T, typename X>
struct Accumulation {
  static constexpr int kCount = kPacket<Element<T>, Element<X>>;
  Element<T>* into;
  const Element<X>* x;
  bool fits() const { return begin_packets<kCount>(into, x); }
  template <int kOnce>
  __device__ void at(std::int64_t i) const {
    Accumulator<T> sum[kOnce], term[kOnce];
    read_packet(into, i, sum);
    read_packet(x, i, term);
    for (int k = 0; k < kOnce; ++k) sum[k] += term[k];
    write_packet(into, i, sum);
  }
};

template <typename T>
struct Multiple {
  static constexpr int kCount = kPacket<Element<T>>;
  Element<T>* x;
  Accumulator<T> factor;
  bool fits() const { return begin_packets<kCount>(x); }
  template <int kOnce>
  __device__ void at(std::int64_t i) const {
    Accumulator<T> value[kOnce];
    read_packet(x, i, value);
    for (int k = 0; k < kOnce; ++k) value[k] *= factor;
    write_packet(x, i, value);
  }
};

template <typename T>
struct Constant {
  static constexpr int kCount = kPacket<Element<T>>;
  Element<T>* y;
  double value;
  bool fits() const { return begin_packets<kCount>(y); }
  template <int kOnce>
  __device__ void at(std::int64_t i) const {
    double same[kOnce];
    for (int k = 0; k < kOnce; ++k) same[k] = value;
    write_packet(y, i, same);
  }
};

template <typename X, typename Y>
struct Conversion {
  static constexpr int kCount = kPacket<Element<X>, Element<Y>>;
  const Element<X>* x;
  Element<Y>* y;
  bool fits() const { return begin_packets<kCount>(x, y); }
  template <int kOnce>
  __device__ void at(std::int64_t i) const {
    Accumulator<X> value[kOnce];
    read_packet(x, i, value);
    write_packet(y, i, value);
  }
};

/// Which elements of a piece dropout keeps: a function of their place in the whole.
struct DropoutMask {
  bool on = false, whole_samples = false;
  DropoutDraw draw;
  int rank = 0;
  std::int64_t begin = 0, first = 0;  ///< sample and element of the piece's first
  Divisor extent[Shape::kMaxRank];
  std::int64_t stride[Shape::kMaxRank] = {};

  /// Packets lie in one sample, and begin with an element from which random numbers are drawn together.
  bool fits(std::int64_t count) const {
    if (!on) return true;
    bool fit = rank > 1 && extent[rank - 1].by % count == 0;
    if (whole_samples) return fit;
    const std::int64_t together = std::min<std::int64_t>(count, 4);
    fit = fit && first % together == 0;
    for (int dim = 1; dim + 1 < rank; ++dim) fit = fit && stride[dim] % together == 0;
    return fit;
  }
  template <int kOnce, typename R>
  __device__ void multiply(std::int64_t i, R (&value)[kOnce]) const {
    std::int64_t element = first;
    for (int dim = rank - 1; dim > 0; --dim) element += take_digit(i, extent[dim]) * stride[dim];
    const auto sample = static_cast<std::uint64_t>(begin + i);
    R factor[kOnce];
    if (whole_samples) {
      const R same = static_cast<R>(draw.factor(sample, 0));
      for (int k = 0; k < kOnce; ++k) factor[k] = same;
    } else {
      draw.factors(sample, static_cast<std::uint64_t>(element), factor);
    }
    for (int k = 0; k < kOnce; ++k) value[k] *= factor[k];
  }
};

DropoutMask mask_of(Context& context, const PointwiseChain& chain) {
  DropoutMask mask;
  if (!chain.dropout) return mask;
  const Dropout& dropout = *chain.dropout;
  mask.on = true;
  mask.whole_samples = dropout.whole_samples;
  mask.draw = dropout_draw(context, dropout.probability, dropout.stream, dropout.position);
  mask.rank = dropout.piece.extent.rank();
  if (mask.rank > 0) mask.begin = dropout.piece.begin[0];
  for (int dim = 1; dim < mask.rank; ++dim) {
    mask.extent[dim] = divisor(dropout.piece.extent[dim]);
    mask.stride[dim] = dropout.global.count(dim + 1, dropout.global.rank());
    mask.first += dropout.piece.begin[dim] * mask.stride[dim];
  }
  return mask;
}

/// Which of a spread operand's numbers belong to elements.
struct SpreadPlace {
  Divisor keep, inner;

  /// The numbers of a packet are neighbours, or one.
  bool fits(std::int64_t count) const { return (inner.by == 1 ? keep.by : inner.by) % count == 0; }
  template <int kOnce, typename R>
  __device__ void read(const R* numbers, std::int64_t i, R (&value)[kOnce]) const {
    i = quotient(i, inner);
    const std::int64_t at = take_digit(i, keep);
    if (inner.by == 1) return read_packet(numbers, at, value);
    const R same = numbers[at];
    for (int k = 0; k < kOnce; ++k) value[k] = same;
  }
};
SpreadPlace place_of(const Spread& spread) {
  return {divisor(spread.keep), divisor(spread.inner)};
}

template <typename T>
struct ChainForward {
  using R = Accumulator<T>;
  static constexpr int kCount = kPacket<Element<T>>;
  Activation activation;
  DropoutMask mask;
  SpreadPlace place;
  const Element<T>* x;
  const R* bias;
  const Element<T>* residual;
  Element<T>* y;
  bool fits() const {
    return begin_packets<kCount>(x, bias, residual, y) && (bias == nullptr || place.fits(kCount)) &&
           mask.fits(kCount);
  }
  template <int kOnce>
  __device__ void at(std::int64_t i) const {
    R value[kOnce], other[kOnce], shift[kOnce];
    read_packet(x, i, value);
    if (residual != nullptr) read_packet(residual, i, other);
    if (bias != nullptr) {
      place.read(bias, i, shift);
      for (int k = 0; k < kOnce; ++k) value[k] += shift[k];
    }
    with_known(activation, [&](auto known) {
      for (int k = 0; k < kOnce; ++k) value[k] = activated(known.kValue, value[k]);
    });
    if (mask.on) mask.multiply(i, value);
    if (residual != nullptr) {
      for (int k = 0; k < kOnce; ++k) value[k] += other[k];
    }
    write_packet(y, i, value);
  }
};

template <typename T>
struct ChainBackward {
  using R = Accumulator<T>;
  static constexpr int kCount = kPacket<Element<T>>;
  Activation activation;
  DropoutMask mask;
  SpreadPlace place;
  const Element<T>* x;  ///< null: there is no activation
  const R* bias;
  const Element<T>* dy;
  Element<T>* dx;
  bool fits() const {
    return begin_packets<kCount>(x, bias, dy, dx) && (bias == nullptr || place.fits(kCount)) &&
           mask.fits(kCount);
  }
  template <int kOnce>
  __device__ void at(std::int64_t i) const {
    R value[kOnce], input[kOnce], shift[kOnce];
    read_packet(dy, i, value);
    if (x != nullptr) read_packet(x, i, input);
    if (bias != nullptr) {
      place.read(bias, i, shift);
      for (int k = 0; k < kOnce; ++k) input[k] += shift[k];
    }
    if (mask.on) mask.multiply(i, value);
    with_known(activation, [&](auto known) {
      if constexpr (known.kValue != Activation::kNone) {
        for (int k = 0; k < kOnce; ++k) value[k] *= activation_derivative(known.kValue, input[k]);
      }
    });
    write_packet(dx, i, value);
  }
};

template <typename T>
struct SpreadMultiple {
  using R = Accumulator<T>;
  static constexpr int kCount = kPacket<Element<T>>;
  SpreadPlace place;
  const Element<T>* x;
  const R* factor;
  Element<T>* y;
  bool fits() const { return begin_packets<kCount>(x, factor, y) && place.fits(kCount); }
  template <int kOnce>
  __device__ void at(std::int64_t i) const {
    R value[kOnce], by[kOnce];
    read_packet(x, i, value);
    place.read(factor, i, by);
    for (int k = 0; k < kOnce; ++k) value[k] *= by[k];
    write_packet(y, i, value);
  }
};

template <typename T>
struct PreluForward {
  using R = Accumulator<T>;
  static constexpr int kCount = kPacket<Element<T>>;
  SpreadPlace place;
  const Element<T>* x;
  const R* slope;
  Element<T>* y;
  bool fits() const { return begin_packets<kCount>(x, slope, y) && place.fits(kCount); }
  template <int kOnce>
  __device__ void at(std::int64_t i) const {
    R value[kOnce], by[kOnce];
    read_packet(x, i, value);
    place.read(slope, i, by);
    for (int k = 0; k < kOnce; ++k) value[k] = value[k] > R(0) ? value[k] : by[k] * value[k];
    write_packet(y, i, value);
  }
};

template <typename T>
struct PreluBackward {
  using R = Accumulator<T>;
  static constexpr int kCount = kPacket<Element<T>>;
  SpreadPlace place;
  const Element<T>*dy, *x;
  const R* slope;
  Element<T>* dx;
  R* terms;
  bool fits() const { return begin_packets<kCount>(dy, x, slope, dx, terms) && place.fits(kCount); }
  template <int kOnce>
  __device__ void at(std::int64_t i) const {
    R value[kOnce], up[kOnce], by[kOnce];
    read_packet(x, i, value);
    read_packet(dy, i, up);
    place.read(slope, i, by);
    for (int k = 0; k < kOnce; ++k) {
      const bool kept = value[k] > R(0);
      value[k] = kept ? R(0) : up[k] * value[k];
      up[k] = kept ? up[k] : by[k] * up[k];
    }
    write_packet(dx, i, up);
    write_packet(terms, i, value);
  }
};

/// Elements of [samples, points, channels], each a term.
template <typename T>
struct Terms {
  using Part = Element<T>;
  std::int64_t points, channels;
  const Part* x;
  __device__ Part read(std::int64_t sample, std::int64_t point, std::int64_t channel) const {
    return x[(sample * points + point) * channels + channel];
  }
  __device__ void add(Part part, double (&sums)[1]) const { sums[0] += load<double>(part); }
};

template <typename R>
struct StoredTotal {
  R* to;
  __device__ void operator()(std::int64_t i, const double (&sums)[1]) const {
    to[i] = static_cast<R>(sums[0]);
  }
};

class Pointwise : public PointwiseKernels {
 public:
  void forward(Context& context, const PointwiseChain& chain, const Array& x, const Array& bias,
               const Array& residual, Array& y) const override {
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_packets(
          context, x.count(),
          ChainForward<T>{chain.activation, mask_of(context, chain), place_of(chain.spread), elements<T>(x),
                          bias.data<Accumulator<T>>(), elements<T>(residual), elements<T>(y)});
    });
  }

  void backward(Context& context, const PointwiseChain& chain, const Array& x, const Array& bias,
                const Array& dy, Array& dx) const override {
    visit(dy.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_packets(context, dy.count(),
                  ChainBackward<T>{chain.activation, mask_of(context, chain), place_of(chain.spread),
                                   chain.activation == Activation::kNone ? nullptr : elements<T>(x),
                                   bias.data<Accumulator<T>>(), elements<T>(dy), elements<T>(dx)});
    });
  }

  /// Sums over the inner dim where that is long enough for a block, else over the outer one, so that
  /// neighbouring threads read neighbouring elements.
  void sum_spread(Context& context, const Spread& spread, const Array& x, Array& sums) const override {
    const auto [outer, keep, inner] = spread;
    if (keep == 0) return;
    if (inner == 0 || outer == 0) return fill(context, sums, 0.0);
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      using R = Accumulator<T>;
      const Terms<T> terms{outer, keep * inner, elements<T>(x)};
      const StoredTotal<R> total{sums.data<R>()};
      if (inner == 1) return column_sums<1>(context, 1, outer, keep, terms, total);
      if (outer == 1) {
        return column_sums<1>(context, keep, inner, 1, Terms<T>{inner, 1, elements<T>(x)}, total);
      }
      if (inner >= kThreads) {
        Array rows(context, {outer, keep}, DType::kFloat64, Purpose::kWorkspace);
        column_sums<1>(context, outer * keep, inner, 1, Terms<T>{inner, 1, elements<T>(x)},
                       StoredTotal<double>{rows.data<double>()});
        return column_sums<1>(context, 1, outer, keep, Terms<double>{outer, keep, rows.data<double>()},
                              total);
      }
      Array rows(context, {keep, inner}, DType::kFloat64, Purpose::kWorkspace);
      column_sums<1>(context, 1, outer, keep * inner, terms, StoredTotal<double>{rows.data<double>()});
      column_sums<1>(context, keep, inner, 1, Terms<double>{inner, 1, rows.data<double>()}, total);
    });
  }

  void scale_spread(Context& context, const Spread& spread, const Array& x, const Array& factor,
                    Array& y) const override {
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_packets(
          context, x.count(),
          SpreadMultiple<T>{place_of(spread), elements<T>(x), factor.data<Accumulator<T>>(), elements<T>(y)});
    });
  }

  void prelu(Context& context, const Spread& spread, const Array& x, const Array& slope,
             Array& y) const override {
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_packets(
          context, x.count(),
          PreluForward<T>{place_of(spread), elements<T>(x), slope.data<Accumulator<T>>(), elements<T>(y)});
    });
  }

  void prelu_backward(Context& context, const Spread& spread, const Array& dy, const Array& x,
                      const Array& slope, Array& dx, Array& terms) const override {
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      using R = Accumulator<T>;
      for_packets(context, x.count(),
                  PreluBackward<T>{place_of(spread), elements<T>(dy), elements<T>(x), slope.data<R>(),
                                   elements<T>(dx), terms.data<R>()});
    });
  }

  void add(Context& context, const Array& a, const Array& b, Array& y) const override {
    visit(a.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_packets(context, y.count(), Sum<T>{elements<T>(a), elements<T>(b), elements<T>(y)});
    });
  }

  void accumulate(Context& context, Array& into, const Array& x) const override {
    visit(into.dtype(), [&](auto into_zero) {
      visit(x.dtype(), [&](auto x_zero) {
        using T = decltype(into_zero);
        using X = decltype(x_zero);
        for_packets(context, x.count(), Accumulation<T, X>{elements<T>(into), elements<X>(x)});
      });
    });
  }

  void scale(Context& context, Array& x, double factor) const override {
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_packets(context, x.count(), Multiple<T>{elements<T>(x), static_cast<Accumulator<T>>(factor)});
    });
  }

  void fill(Context& context, Array& y, double value) const override {
    visit(y.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_packets(context, y.count(), Constant<T>{elements<T>(y), value});
    });
  }

  void cast(Context& context, const Array& x, Array& y) const override { convert(context, x, y); }
};

}  // namespace

void convert(Context& context, const Array& x, Array& y) {
  visit(x.dtype(), [&](auto x_zero) {
    visit(y.dtype(), [&](auto y_zero) {
      using X = decltype(x_zero);
      using Y = decltype(y_zero);
      for_packets(context, x.count(), Conversion<X, Y>{elements<X>(x), elements<Y>(y)});
    });
  });
}

template <>
const PointwiseKernels& kernels() {
  static const Pointwise instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::cuda
