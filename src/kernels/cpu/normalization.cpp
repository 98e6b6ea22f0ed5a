#include <algorithm>
#include <cmath>
#include <vector>

#include "array/parallel.h"
#include "array/raw_memory.h"
#include "kernels/cpu/lane_sum.h"
#include "kernels/cpu/thread_sums.h"
#include "kernels/cpu/types.h"
#include "kernels/cpu/vector_math.h"
#include "kernels/cpu/vectorize.h"
#include "kernels/front/normalization_kernels.h"

namespace jigsaw::inline kernels::cpu {

namespace {

/// A row as float32: itself, or converted into the buffer.
inline const float* as_floats(const float* row, std::int64_t, std::vector<float>&) {
  return row;
}
inline const float* as_floats(const BFloat16* row, std::int64_t n, std::vector<float>& buffer) {
  for (std::int64_t i = 0; i < n; ++i) buffer[static_cast<std::size_t>(i)] = static_cast<float>(row[i]);
  return buffer.data();
}

/// Extents, and gamma and beta that are always there.
struct RowShape {
  RowShape(const Array& x, const Array& gamma_, const Array& beta_)
      : c(x.shape().back()),
        rows(x.shape().count(0, x.rank() - 1)),
        ones(gamma_.defined() ? 0 : static_cast<std::size_t>(c), 1.0F),
        zeros(beta_.defined() ? 0 : static_cast<std::size_t>(c), 0.0F),
        gamma(gamma_.defined() ? gamma_.data<float>() : ones.data()),
        beta(beta_.defined() ? beta_.data<float>() : zeros.data()) {}
  RowShape(const RowShape&) = delete;
  RowShape& operator=(const RowShape&) = delete;

  std::int64_t c, rows;
  std::vector<float> ones, zeros;
  const float *gamma, *beta;
};

/// Calls f(row, x, dy, thread) for every row as float32; `dy` undefined gives null. Vectorised, on threads.
template <typename F>
void for_rows(int threads, const Array& x, const Array& dy, const F& f) {
  const std::int64_t c = x.shape().back(), rows = x.shape().count(0, x.rank() - 1);
  visit_fast(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* const from = x.data<T>();
    const T* const slopes = dy.defined() ? dy.data<T>() : nullptr;
    for_ranges(threads, rows, 1, [&](std::int64_t begin, std::int64_t end, int thread) {
      std::vector<float> x_buffer(std::is_same_v<T, float> ? 0 : static_cast<std::size_t>(c)),
          dy_buffer(x_buffer);
      vectorized([&, begin, end] {
        for (std::int64_t row = begin; row < end; ++row) {
          const float* const xs = as_floats(from + row * c, c, x_buffer);
          const float* const dys = slopes != nullptr ? as_floats(slopes + row * c, c, dy_buffer) : nullptr;
          f(row, xs, dys, thread);
        }
      });
    });
  });
}

struct RowMoments {
  float mean, m2;
};

inline RowMoments moments_of(const float* x, std::int64_t c, Centre centre) {
  if (c == 0) return {0.0F, 0.0F};
  if (centre == Centre::kZero) return {0.0F, lane_sum<float>(c, [x](std::int64_t i) { return x[i] * x[i]; })};
  const float mean = lane_sum<float>(c, [x](std::int64_t i) { return x[i]; }) / static_cast<float>(c);
  const float m2 = lane_sum<float>(c, [x, mean](std::int64_t i) { return (x[i] - mean) * (x[i] - mean); });
  return {mean, m2};
}

template <typename T>
inline void normalize(const RowShape& shape, const float* x, float mean, float rstd, T* y) {
  const float *const gamma = shape.gamma, *const beta = shape.beta;
  for (std::int64_t i = 0; i < shape.c; ++i) y[i] = rounded<T>((x[i] - mean) * rstd * gamma[i] + beta[i]);
}

struct RowSums {
  float sum, product;
};

/// Σ dy·gamma and Σ dy·gamma·x̂.
inline RowSums sums_of(const float* x, const float* dy, const float* gamma, std::int64_t c, float mean,
                       float rstd) {
  return {lane_sum<float>(c, [=](std::int64_t i) { return dy[i] * gamma[i]; }),
          lane_sum<float>(c, [=](std::int64_t i) { return dy[i] * gamma[i] * (x[i] - mean); }) * rstd};
}

class Normalization : public NormalizationKernels {
 public:
  void row_moments(Context& context, const Array& x, Moments& moments) const override {
    float *const mean = moments.mean.data<float>(), *const m2 = moments.m2.data<float>();
    const std::int64_t c = x.shape().back();
    for_rows(threads_of(context, x), x, Array(), [=](std::int64_t row, const float* xs, const float*, int) {
      const RowMoments found = moments_of(xs, c, Centre::kMean);
      mean[row] = found.mean;
      m2[row] = found.m2;
    });
  }

  void forward(Context& context, const Array& x, const Array& gamma, const Array& beta, double eps,
               Centre centre, NormStatistics& statistics, Array& y) const override {
    const RowShape shape(x, gamma, beta);
    float *const means = statistics.mean.data<float>(), *const rstds =
                                                            statistics.reciprocal_deviation.data<float>();
    const auto epsilon = static_cast<float>(eps),
               count = static_cast<float>(std::max<std::int64_t>(shape.c, 1));
    visit_fast(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      T* const to = y.data<T>();
      for_rows(threads_of(context, x), x, Array(), [&](std::int64_t row, const float* xs, const float*, int) {
        const RowMoments found = moments_of(xs, shape.c, centre);
        means[row] = found.mean;
        rstds[row] = 1.0F / std::sqrt(found.m2 / count + epsilon);
        normalize(shape, xs, means[row], rstds[row], to + row * shape.c);
      });
    });
  }

  void apply(Context& context, const Array& x, const Array& gamma, const Array& beta,
             const NormStatistics& statistics, Array& y) const override {
    const RowShape shape(x, gamma, beta);
    const float* const means = statistics.mean.data<float>();
    const float* const rstds = statistics.reciprocal_deviation.data<float>();
    visit_fast(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      T* const to = y.data<T>();
      for_rows(threads_of(context, x), x, Array(), [&](std::int64_t row, const float* xs, const float*, int) {
        normalize(shape, xs, means[row], rstds[row], to + row * shape.c);
      });
    });
  }

  void backward(Context& context, const Array& dy, const Array& x, const Array& gamma,
                const NormStatistics& statistics, Centre centre, const Array& row_sums, std::int64_t c_total,
                NormGradients& gradients) const override {
    const RowShape shape(x, gamma, Array());
    const int threads = threads_of(context, x);
    ThreadSums partial(context, threads, 2 * shape.c);
    const float* const means = statistics.mean.data<float>();
    const float* const rstds = statistics.reciprocal_deviation.data<float>();
    const float* const given = row_sums.defined() ? row_sums.data<float>() : nullptr;
    const float share = 1.0F / static_cast<float>(std::max<std::int64_t>(c_total, 1));
    visit_fast(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_rows(threads, x, dy, [&](std::int64_t row, const float* xs, const float* dys, int thread) {
        const float mean = means[row], rstd = rstds[row];
        const RowSums sums = given != nullptr ? RowSums{given[2 * row], given[2 * row + 1]}
                                              : sums_of(xs, dys, shape.gamma, shape.c, mean, rstd);
        const float sum = given == nullptr && centre == Centre::kZero ? 0.0F : sums.sum * share;
        backward_row(shape, xs, dys, mean, rstd, {sum, sums.product * share},
                     gradients.dx.data<T>() + row * shape.c, partial.of(thread));
        partial.added(thread);
      });
    });
    if (!gamma.defined()) return;
    partial.total(0, shape.c, gradients.dgamma.data<float>());
    partial.total(shape.c, shape.c, gradients.dbeta.data<float>());
  }

  void row_sums(Context& context, const Array& dy, const Array& x, const Array& gamma,
                const NormStatistics& statistics, Array& sums) const override {
    const RowShape shape(x, gamma, Array());
    const float* const means = statistics.mean.data<float>();
    const float* const rstds = statistics.reciprocal_deviation.data<float>();
    float* const to = sums.data<float>();
    for_rows(threads_of(context, x), x, dy, [&](std::int64_t row, const float* xs, const float* dys, int) {
      const RowSums found = sums_of(xs, dys, shape.gamma, shape.c, means[row], rstds[row]);
      to[2 * row] = found.sum;
      to[2 * row + 1] = found.product;
    });
  }

 private:
  static int threads_of(const Context& context, const Array& x) {
    return threads_for(context, x.shape().count(0, x.rank() - 1), x.shape().back());
  }

  /// `means`: of dy·gamma and of dy·gamma·x̂ over the whole row. `sums` holds dgamma, then dbeta.
  template <typename T>
  static void backward_row(const RowShape& shape, const float* x, const float* dy, float mean, float rstd,
                           RowSums means, T* dx, float* sums) {
    float *const dgamma = sums, *const dbeta = sums + shape.c;
    const float* const gamma = shape.gamma;
#pragma GCC ivdep  // no array overlaps another
    for (std::int64_t i = 0; i < shape.c; ++i) {
      const float normalized = (x[i] - mean) * rstd;
      dx[i] = rounded<T>(rstd * (dy[i] * gamma[i] - means.sum - normalized * means.product));
      dgamma[i] += dy[i] * normalized;
      dbeta[i] += dy[i];
    }
  }
};

}  // namespace

template <>
const NormalizationKernels& kernels() {
  static const Normalization instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::cpu
