#include <algorithm>

#include "array/parallel.h"
#include "array/raw_memory.h"
#include "kernels/cpu/lane_sum.h"
#include "kernels/cpu/pointwise_chain.h"
#include "kernels/cpu/thread_sums.h"
#include "kernels/cpu/types.h"
#include "kernels/cpu/vector_math.h"
#include "kernels/cpu/vectorize.h"
#include "kernels/front/pointwise_kernels.h"

namespace jigsaw::inline kernels::cpu {

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
  ThreadSums partial(context, threads, keep);
  for_ranges(threads, rows, 1, [&](std::int64_t begin, std::int64_t end, int thread) {
    float* const mine = partial.of(thread);
    for (std::int64_t first = begin; first < end; first += ThreadSums::kRows) {
      vectorized([=, last = std::min(end, first + ThreadSums::kRows)] {
        for (std::int64_t row = first; row < last; ++row) {
          const T* const values = x + row * keep;
          for (std::int64_t k = 0; k < keep; ++k) mine[k] += static_cast<float>(values[k]);
        }
      });
      partial.flush(thread);
    }
  });
  partial.total(0, keep, sums);
}

/// Calls f(i, the small operand's number for element i) for all elements, vectorised and on threads.
template <typename F>
void for_spread(Context& context, const Spread& spread, const float* numbers, const F& f) {
  const std::int64_t length = spread.inner == 1 ? spread.keep : spread.inner;
  if (spread.outer * spread.keep * spread.inner == 0) return;
  const std::int64_t rows = spread.outer * spread.keep * spread.inner / length;
  for_ranges(threads_for(context, rows, length), rows, 1, [&](std::int64_t begin, std::int64_t end, int) {
    vectorized([=] {
      for (std::int64_t row = begin; row < end; ++row) {
        const std::int64_t first = row * length;
        if (spread.inner == 1) {
#pragma GCC ivdep  // no array overlaps another
          for (std::int64_t i = 0; i < length; ++i) f(first + i, numbers[i]);
        } else {
          const float number = numbers[row % spread.keep];
#pragma GCC ivdep
          for (std::int64_t i = 0; i < length; ++i) f(first + i, number);
        }
      }
    });
  });
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
            double sum = 0;
            for (std::int64_t outer = 0; outer < spread.outer; ++outer) {
              const T* const run = from + (outer * spread.keep + k) * spread.inner;
              sum += long_sum(spread.inner, [run](std::int64_t i) { return static_cast<float>(run[i]); });
            }
            to[k] = static_cast<float>(sum);
          }
        });
      });
    });
  }

  void scale_spread(Context& context, const Spread& spread, const Array& x, const Array& factor,
                    Array& y) const override {
    visit_fast(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_spread(context, spread, factor.data<float>(),
                 [from = x.data<T>(), to = y.data<T>()](std::int64_t i, float by) {
                   to[i] = rounded<T>(static_cast<float>(from[i]) * by);
                 });
    });
  }

  void prelu(Context& context, const Spread& spread, const Array& x, const Array& slope,
             Array& y) const override {
    visit_fast(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_spread(context, spread, slope.data<float>(),
                 [from = x.data<T>(), to = y.data<T>()](std::int64_t i, float by) {
                   const auto value = static_cast<float>(from[i]);
                   to[i] = rounded<T>(value > 0 ? value : by * value);
                 });
    });
  }

  void prelu_backward(Context& context, const Spread& spread, const Array& dy, const Array& x,
                      const Array& slope, Array& dx, Array& terms) const override {
    visit_fast(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_spread(context, spread, slope.data<float>(),
                 [from = x.data<T>(), ups = dy.data<T>(), to = dx.data<T>(), term = terms.data<float>()](
                     std::int64_t i, float by) {
                   const auto value = static_cast<float>(from[i]), up = static_cast<float>(ups[i]);
                   to[i] = rounded<T>(value > 0 ? up : by * up);
                   term[i] = value > 0 ? 0.0F : up * value;
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

}  // namespace jigsaw::inline kernels::cpu
