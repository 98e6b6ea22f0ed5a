#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/column_sums.cuh"
#include "kernels/cuda/random.cuh"
#include "kernels/front/pointwise_kernels.h"

namespace jigsaw::inline kernels::cuda {

namespace {

/// Functions of the element's index; extended lambdas would need a compiler flag.
template <typename T>
struct Sum {
  const Element<T>*a, *b;
  Element<T>* y;
  __device__ void operator()(std::int64_t i) const {
    using R = Accumulator<T>;
    y[i] = stored<Element<T>>(load<R>(a[i]) + load<R>(b[i]));
  }
};

template <typename T, typename X>
struct Accumulation {
  Element<T>* into;
  const Element<X>* x;
  __device__ void operator()(std::int64_t i) const {
    using R = Accumulator<T>;
    into[i] = stored<Element<T>>(load<R>(into[i]) + load<R>(x[i]));
  }
};

template <typename T>
struct Multiple {
  Element<T>* x;
  Accumulator<T> factor;
  __device__ void operator()(std::int64_t i) const {
    x[i] = stored<Element<T>>(load<Accumulator<T>>(x[i]) * factor);
  }
};

template <typename T>
struct Constant {
  Element<T>* y;
  double value;
  __device__ void operator()(std::int64_t i) const { y[i] = stored<Element<T>>(value); }
};

template <typename X, typename Y>
struct Conversion {
  const Element<X>* x;
  Element<Y>* y;
  __device__ void operator()(std::int64_t i) const { y[i] = stored<Element<Y>>(load<Accumulator<X>>(x[i])); }
};

/// Which elements of a piece dropout keeps: a function of their place in the whole.
struct DropoutMask {
  bool on = false, whole_samples = false;
  DropoutDraw draw;
  int rank = 0;
  std::int64_t extent[Shape::kMaxRank] = {}, begin[Shape::kMaxRank] = {}, stride[Shape::kMaxRank] = {};

  template <typename R>
  __device__ R factor(std::int64_t i) const {
    std::int64_t element = 0;
    for (int dim = rank - 1; dim > 0; --dim) {
      element += (begin[dim] + i % extent[dim]) * stride[dim];
      i /= extent[dim];
    }
    return static_cast<R>(draw.factor(static_cast<std::uint64_t>(begin[0] + i),
                                      whole_samples ? 0 : static_cast<std::uint64_t>(element)));
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
  for (int dim = 0; dim < mask.rank; ++dim) {
    mask.extent[dim] = dropout.piece.extent[dim];
    mask.begin[dim] = dropout.piece.begin[dim];
    mask.stride[dim] = dropout.global.count(dim + 1, dropout.global.rank());
  }
  return mask;
}

/// Which of a spread operand's numbers belongs to element i.
struct SpreadPlace {
  std::int64_t keep, inner;
  __device__ std::int64_t operator()(std::int64_t i) const { return i / inner % keep; }
};
SpreadPlace place_of(const Spread& spread) {
  return {spread.keep, spread.inner};
}

template <typename T>
struct ChainForward {
  using R = Accumulator<T>;
  Activation activation;
  DropoutMask mask;
  SpreadPlace place;
  const Element<T>* x;
  const R* bias;
  const Element<T>* residual;
  Element<T>* y;
  __device__ void operator()(std::int64_t i) const {
    R value = load<R>(x[i]);
    if (bias != nullptr) value += bias[place(i)];
    value = activated(activation, value);
    if (mask.on) value *= mask.factor<R>(i);
    if (residual != nullptr) value += load<R>(residual[i]);
    y[i] = stored<Element<T>>(value);
  }
};

template <typename T>
struct ChainBackward {
  using R = Accumulator<T>;
  Activation activation;
  DropoutMask mask;
  SpreadPlace place;
  const Element<T>* x;
  const R* bias;
  const Element<T>* dy;
  Element<T>* dx;
  __device__ void operator()(std::int64_t i) const {
    R value = load<R>(dy[i]);
    if (mask.on) value *= mask.factor<R>(i);
    if (activation != Activation::kNone) {
      const R at = load<R>(x[i]);
      value *= activation_derivative(activation, bias != nullptr ? at + bias[place(i)] : at);
    }
    dx[i] = stored<Element<T>>(value);
  }
};

template <typename T>
struct SpreadMultiple {
  SpreadPlace place;
  const Element<T>* x;
  const Accumulator<T>* factor;
  Element<T>* y;
  __device__ void operator()(std::int64_t i) const {
    y[i] = stored<Element<T>>(load<Accumulator<T>>(x[i]) * factor[place(i)]);
  }
};

template <typename T>
struct PreluForward {
  using R = Accumulator<T>;
  SpreadPlace place;
  const Element<T>* x;
  const R* slope;
  Element<T>* y;
  __device__ void operator()(std::int64_t i) const {
    const R value = load<R>(x[i]);
    y[i] = stored<Element<T>>(value > R(0) ? value : slope[place(i)] * value);
  }
};

template <typename T>
struct PreluBackward {
  using R = Accumulator<T>;
  SpreadPlace place;
  const Element<T>*dy, *x;
  const R* slope;
  Element<T>* dx;
  R* terms;
  __device__ void operator()(std::int64_t i) const {
    const R value = load<R>(x[i]), up = load<R>(dy[i]);
    dx[i] = stored<Element<T>>(value > R(0) ? up : slope[place(i)] * up);
    terms[i] = value > R(0) ? R(0) : up * value;
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
      for_elements(
          context, x.count(),
          ChainForward<T>{chain.activation, mask_of(context, chain), place_of(chain.spread), elements<T>(x),
                          bias.data<Accumulator<T>>(), elements<T>(residual), elements<T>(y)});
    });
  }

  void backward(Context& context, const PointwiseChain& chain, const Array& x, const Array& bias,
                const Array& dy, Array& dx) const override {
    visit(dy.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_elements(
          context, dy.count(),
          ChainBackward<T>{chain.activation, mask_of(context, chain), place_of(chain.spread), elements<T>(x),
                           bias.data<Accumulator<T>>(), elements<T>(dy), elements<T>(dx)});
    });
  }

  /// Over the outer dim first, with neighbouring elements side by side, then over the inner one.
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
      Array rows(context, {keep, inner}, DType::kFloat64, Purpose::kWorkspace);
      column_sums<1>(context, 1, outer, keep * inner, terms, StoredTotal<double>{rows.data<double>()});
      column_sums<1>(context, keep, inner, 1, Terms<double>{inner, 1, rows.data<double>()}, total);
    });
  }

  void scale_spread(Context& context, const Spread& spread, const Array& x, const Array& factor,
                    Array& y) const override {
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_elements(
          context, x.count(),
          SpreadMultiple<T>{place_of(spread), elements<T>(x), factor.data<Accumulator<T>>(), elements<T>(y)});
    });
  }

  void prelu(Context& context, const Spread& spread, const Array& x, const Array& slope,
             Array& y) const override {
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_elements(
          context, x.count(),
          PreluForward<T>{place_of(spread), elements<T>(x), slope.data<Accumulator<T>>(), elements<T>(y)});
    });
  }

  void prelu_backward(Context& context, const Spread& spread, const Array& dy, const Array& x,
                      const Array& slope, Array& dx, Array& terms) const override {
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      using R = Accumulator<T>;
      for_elements(context, x.count(),
                   PreluBackward<T>{place_of(spread), elements<T>(dy), elements<T>(x), slope.data<R>(),
                                    elements<T>(dx), terms.data<R>()});
    });
  }

  void add(Context& context, const Array& a, const Array& b, Array& y) const override {
    visit(a.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_elements(context, y.count(), Sum<T>{elements<T>(a), elements<T>(b), elements<T>(y)});
    });
  }

  void accumulate(Context& context, Array& into, const Array& x) const override {
    visit(into.dtype(), [&](auto into_zero) {
      visit(x.dtype(), [&](auto x_zero) {
        using T = decltype(into_zero);
        using X = decltype(x_zero);
        for_elements(context, x.count(), Accumulation<T, X>{elements<T>(into), elements<X>(x)});
      });
    });
  }

  void scale(Context& context, Array& x, double factor) const override {
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_elements(context, x.count(), Multiple<T>{elements<T>(x), static_cast<Accumulator<T>>(factor)});
    });
  }

  void fill(Context& context, Array& y, double value) const override {
    visit(y.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_elements(context, y.count(), Constant<T>{elements<T>(y), value});
    });
  }

  void cast(Context& context, const Array& x, Array& y) const override {
    visit(x.dtype(), [&](auto x_zero) {
      visit(y.dtype(), [&](auto y_zero) {
        using X = decltype(x_zero);
        using Y = decltype(y_zero);
        for_elements(context, x.count(), Conversion<X, Y>{elements<X>(x), elements<Y>(y)});
      });
    });
  }
};

}  // namespace

template <>
const PointwiseKernels& kernels() {
  static const Pointwise instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::cuda
