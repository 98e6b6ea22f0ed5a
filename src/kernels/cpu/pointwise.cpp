#include <algorithm>

#include "kernels/cpu/lane_sum.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/pointwise_chain.h"
#include "kernels/cpu/thread_sums.h"
#include "kernels/cpu/types.h"
#include "kernels/cpu/vector_math.h"
#include "kernels/cpu/vectorize.h"
#include "kernels/pointwise_kernels.h"

namespace jigsaw::cpu {

namespace {

/// y[i] = f(i), vectorised and on threads.
template <typename T, typename F>
void map(Context& context, std::int64_t count, T* y, const F& f) {
  constexpr std::int64_t kStep = 1024;
  for_ranges(threads_for(context, count, 1), count, kStep, [&](std::int64_t begin, std::int64_t end, int) {
    vectorized([=] {
      for (std::int64_t i = begin; i < end; ++i) y[i] = rounded<T>(f(i));
    });
  });
}

/// Sums over the rows of [rows, keep]: threads take ranges of rows.
template <typename T>
void sum_rows(Context& context, std::int64_t rows, std::int64_t keep, const T* x, float* sums) {
  const int threads = threads_for(context, rows, keep);
  const ThreadSums partial(context, threads, keep);
  for_ranges(threads, rows, 1, [&](std::int64_t begin, std::int64_t end, int thread) {
    float* const mine = partial.of(thread);
    vectorized([=] {
      for (std::int64_t row = begin; row < end; ++row) {
        const T* const values = x + row * keep;
        for (std::int64_t k = 0; k < keep; ++k) mine[k] += static_cast<float>(values[k]);
      }
    });
  });
  partial.total(0, keep, sums);
}

class Pointwise : public PointwiseKernels {
 public:
  void forward(Context& context, const PointwiseChain& chain, const Array& x, const Array& bias,
               const Array& residual, Array& y) const override {
    chain_forward(context, chain, x, bias, residual, y);
  }

  void backward(Context& context, const PointwiseChain& chain, const Array& x, const Array& bias,
                const Array& dy, Array& dx) const override {
    chain_backward(context, chain, x, bias, dy, dx);
  }

  void sum_spread(Context& context, const Spread& spread, const Array& x, Array& sums) const override {
    float* const to = sums.data<float>();
    visit_fast(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const T* const from = x.data<T>();
      if (spread.inner == 1) return sum_rows(context, spread.outer, spread.keep, from, to);
      const int threads = threads_for(context, spread.keep, spread.outer * spread.inner);
      for_ranges(threads, spread.keep, 1, [&](std::int64_t begin, std::int64_t end, int) {
        vectorized([=] {
          for (std::int64_t k = begin; k < end; ++k) {
            float sum = 0;
            for (std::int64_t outer = 0; outer < spread.outer; ++outer) {
              const T* const run = from + (outer * spread.keep + k) * spread.inner;
              sum +=
                  lane_sum<float>(spread.inner, [run](std::int64_t i) { return static_cast<float>(run[i]); });
            }
            to[k] = sum;
          }
        });
      });
    });
  }

  void scale_spread(Context& context, const Spread& spread, const Array& x, const Array& factor,
                    Array& y) const override {
    const std::int64_t length = spread.inner == 1 ? spread.keep : spread.inner;
    if (x.count() == 0) return;
    const std::int64_t rows = x.count() / length;
    const float* const by = factor.data<float>();
    visit_fast(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_ranges(threads_for(context, rows, length), rows, 1, [&](std::int64_t begin, std::int64_t end, int) {
        vectorized([&, begin, end] {
          for (std::int64_t row = begin; row < end; ++row) {
            const T* const from = x.data<T>() + row * length;
            T* const to = y.data<T>() + row * length;
            const float constant = by[row % spread.keep];
            for (std::int64_t i = 0; i < length; ++i) {
              to[i] = rounded<T>(static_cast<float>(from[i]) * (spread.inner == 1 ? by[i] : constant));
            }
          }
        });
      });
    });
  }

  void add(Context& context, const Array& a, const Array& b, Array& y) const override {
    visit_fast(a.dtype(), [&](auto zero) {
      using T = decltype(zero);
      map(context, a.count(), y.data<T>(), [a = a.data<T>(), b = b.data<T>()](std::int64_t i) {
        return static_cast<float>(a[i]) + static_cast<float>(b[i]);
      });
    });
  }

  void accumulate(Context& context, Array& into, const Array& x) const override {
    visit_fast(into.dtype(), [&](auto into_zero) {
      visit_fast(x.dtype(), [&](auto x_zero) {
        using T = decltype(into_zero);
        map(context, x.count(), into.data<T>(),
            [a = into.data<T>(), b = x.data<decltype(x_zero)>()](std::int64_t i) {
              return static_cast<float>(a[i]) + static_cast<float>(b[i]);
            });
      });
    });
  }

  void scale(Context& context, Array& x, double factor) const override {
    visit_fast(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      map(context, x.count(), x.data<T>(),
          [a = x.data<T>(), by = static_cast<float>(factor)](std::int64_t i) {
            return static_cast<float>(a[i]) * by;
          });
    });
  }

  void fill(Context& context, Array& y, double value) const override {
    visit_fast(y.dtype(), [&](auto zero) {
      map(context, y.count(), y.data<decltype(zero)>(),
          [to = static_cast<float>(value)](std::int64_t) { return to; });
    });
  }

  void cast(Context& context, const Array& x, Array& y) const override {
    visit_fast(x.dtype(), [&](auto x_zero) {
      visit_fast(y.dtype(), [&](auto y_zero) {
        map(context, x.count(), y.data<decltype(y_zero)>(),
            [a = x.data<decltype(x_zero)>()](std::int64_t i) { return static_cast<float>(a[i]); });
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

}  // namespace jigsaw::cpu
