#include "kernels/cuda/device.cuh"
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

class Pointwise : public PointwiseKernels {
 public:
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
