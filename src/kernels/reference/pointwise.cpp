#include <algorithm>
#include <cmath>
#include <vector>

#include "array/raw_memory.h"
#include "kernels/front/pointwise_kernels.h"
#include "kernels/reference/activation.h"

namespace jigsaw::inline kernels::reference {

namespace {

/// What dropout multiplies element i of the piece by.
double dropout_factor(const Dropout& dropout, std::int64_t i) {
  const Shape& extent = dropout.piece.extent;
  Shape index = extent;
  for (int dim = extent.rank() - 1; dim >= 0; --dim) {
    index[dim] = dropout.piece.begin[dim] + i % extent[dim];
    i /= extent[dim];
  }
  std::int64_t element = 0;
  for (int dim = 1; dim < extent.rank(); ++dim) element = element * dropout.global[dim] + index[dim];
  RandomPosition position = dropout.position;
  position.sample += static_cast<std::uint64_t>(index[0]);
  if (dropout.whole_samples) element = 0;
  const bool keep =
      dropout.stream.uniform(position, static_cast<std::uint64_t>(element)) >= dropout.probability;
  return keep ? 1.0 / (1.0 - dropout.probability) : 0.0;
}

template <typename R>
R biased(const PointwiseChain& chain, R x, const Array& bias, std::int64_t i) {
  return bias.defined() ? x + bias.data<R>()[i / chain.spread.inner % chain.spread.keep] : x;
}

template <typename T>
void forward_typed(const PointwiseChain& chain, const Array& x, const Array& bias, const Array& residual,
                   Array& y) {
  using R = Accumulator<T>;
  for (std::int64_t i = 0; i < x.count(); ++i) {
    R value = biased<R>(chain, static_cast<R>(x.data<T>()[i]), bias, i);
    value = activated(chain.activation, value);
    if (chain.dropout) value *= static_cast<R>(dropout_factor(*chain.dropout, i));
    if (residual.defined()) value += static_cast<R>(residual.data<T>()[i]);
    y.data<T>()[i] = static_cast<T>(value);
  }
}

template <typename T>
void backward_typed(const PointwiseChain& chain, const Array& x, const Array& bias, const Array& dy,
                    Array& dx) {
  using R = Accumulator<T>;
  for (std::int64_t i = 0; i < dy.count(); ++i) {
    R value = static_cast<R>(dy.data<T>()[i]);
    if (chain.dropout) value *= static_cast<R>(dropout_factor(*chain.dropout, i));
    if (chain.activation != Activation::kNone) {
      value *=
          activation_derivative(chain.activation, biased<R>(chain, static_cast<R>(x.data<T>()[i]), bias, i));
    }
    dx.data<T>()[i] = static_cast<T>(value);
  }
}

class Pointwise : public PointwiseKernels {
 public:
  void forward(Context&, const PointwiseChain& chain, const Array& x, const Array& bias,
               const Array& residual, Array& y) const override {
    visit(x.dtype(), [&](auto zero) { forward_typed<decltype(zero)>(chain, x, bias, residual, y); });
  }

  void backward(Context&, const PointwiseChain& chain, const Array& x, const Array& bias, const Array& dy,
                Array& dx) const override {
    visit(dy.dtype(), [&](auto zero) { backward_typed<decltype(zero)>(chain, x, bias, dy, dx); });
  }

  void sum_spread(Context&, const Spread& spread, const Array& x, Array& sums) const override {
    std::vector<double> wide(static_cast<std::size_t>(spread.keep), 0.0);
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for (std::int64_t i = 0; i < x.count(); ++i) {
        wide[static_cast<std::size_t>(i / spread.inner % spread.keep)] += static_cast<double>(x.data<T>()[i]);
      }
    });
    visit(sums.dtype(), [&](auto zero) {
      using T = decltype(zero);
      std::ranges::transform(wide, sums.data<T>(), [](double sum) { return static_cast<T>(sum); });
    });
  }

  void scale_spread(Context&, const Spread& spread, const Array& x, const Array& factor,
                    Array& y) const override {
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      using R = Accumulator<T>;
      for (std::int64_t i = 0; i < x.count(); ++i) {
        const R by = factor.data<R>()[i / spread.inner % spread.keep];
        y.data<T>()[i] = static_cast<T>(static_cast<R>(x.data<T>()[i]) * by);
      }
    });
  }

  void prelu(Context&, const Spread& spread, const Array& x, const Array& slope, Array& y) const override {
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      using R = Accumulator<T>;
      for (std::int64_t i = 0; i < x.count(); ++i) {
        const R value = static_cast<R>(x.data<T>()[i]), by = slope.data<R>()[i / spread.inner % spread.keep];
        y.data<T>()[i] = static_cast<T>(value > R{0} ? value : by * value);
      }
    });
  }

  void prelu_backward(Context&, const Spread& spread, const Array& dy, const Array& x, const Array& slope,
                      Array& dx, Array& terms) const override {
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      using R = Accumulator<T>;
      for (std::int64_t i = 0; i < x.count(); ++i) {
        const R value = static_cast<R>(x.data<T>()[i]), up = static_cast<R>(dy.data<T>()[i]);
        const R by = slope.data<R>()[i / spread.inner % spread.keep];
        dx.data<T>()[i] = static_cast<T>(value > R{0} ? up : by * up);
        terms.data<R>()[i] = value > R{0} ? R{0} : up * value;
      }
    });
  }

  void add(Context&, const Array& a, const Array& b, Array& y) const override {
    visit(a.dtype(), [&](auto zero) {
      using T = decltype(zero);
      using R = Accumulator<T>;
      for (std::int64_t i = 0; i < a.count(); ++i) {
        y.data<T>()[i] = static_cast<T>(static_cast<R>(a.data<T>()[i]) + static_cast<R>(b.data<T>()[i]));
      }
    });
  }

  void accumulate(Context&, Array& into, const Array& x) const override {
    visit(into.dtype(), [&](auto into_zero) {
      visit(x.dtype(), [&](auto x_zero) {
        using T = decltype(into_zero);
        using X = decltype(x_zero);
        using R = Accumulator<T>;
        for (std::int64_t i = 0; i < x.count(); ++i) {
          T& element = into.data<T>()[i];
          element = static_cast<T>(static_cast<R>(element) + static_cast<R>(x.data<X>()[i]));
        }
      });
    });
  }

  void scale(Context&, Array& x, double factor) const override {
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      using R = Accumulator<T>;
      for (T& element : x.span<T>())
        element = static_cast<T>(static_cast<R>(element) * static_cast<R>(factor));
    });
  }

  void fill(Context&, Array& y, double value) const override {
    visit(y.dtype(), [&](auto zero) { std::ranges::fill(y.span<decltype(zero)>(), decltype(zero)(value)); });
  }

  void cast(Context&, const Array& x, Array& y) const override {
    visit(x.dtype(), [&](auto x_zero) {
      visit(y.dtype(), [&](auto y_zero) {
        using X = decltype(x_zero);
        using Y = decltype(y_zero);
        for (std::int64_t i = 0; i < x.count(); ++i) {
          y.data<Y>()[i] = static_cast<Y>(static_cast<Accumulator<X>>(x.data<X>()[i]));
        }
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

}  // namespace jigsaw::inline kernels::reference
