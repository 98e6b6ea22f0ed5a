#include "array/raw_memory.h"
#include "kernels/cuda/column_sums.cuh"
#include "kernels/front/normalization_kernels.h"

namespace jigsaw::inline kernels::cuda {

namespace {

/// What the kernels of one LayerNorm read: T is the type of x, R of statistics, gamma and beta (null: ones
/// and zeros).
template <typename T>
struct Rows {
  using R = Accumulator<T>;
  std::int64_t rows, c;
  const Element<T>* x;
  const R *gamma, *beta;

  __device__ R value(std::int64_t row, std::int64_t i) const { return load<R>(x[row * c + i]); }
  __device__ R factor(std::int64_t i) const { return gamma != nullptr ? gamma[i] : R(1); }
  __device__ R shift(std::int64_t i) const { return beta != nullptr ? beta[i] : R(0); }
};

template <typename T>
Rows<T> rows_of(const Array& x, const Array& gamma, const Array& beta) {
  using R = Accumulator<T>;
  return {x.shape().count(0, x.rank() - 1), x.shape().back(), elements<T>(x),
          gamma.defined() ? gamma.data<R>() : nullptr, beta.defined() ? beta.data<R>() : nullptr};
}

/// Mean and Σ (x − mean)² of a row, by a block; about zero 0 and Σ x².
template <typename T>
__device__ void block_moments(const Rows<T>& all, std::int64_t row, Centre centre, Accumulator<T>& mean,
                              Accumulator<T>& m2) {
  using R = Accumulator<T>;
  R sum = 0, squares = 0;
  for (std::int64_t i = threadIdx.x; i < all.c; i += kThreads) sum += all.value(row, i);
  mean = all.c > 0 ? block_sum(sum) / static_cast<R>(all.c) : R(0);
  if (centre == Centre::kZero) mean = R(0);
  for (std::int64_t i = threadIdx.x; i < all.c; i += kThreads) {
    const R deviation = all.value(row, i) - mean;
    squares += deviation * deviation;
  }
  m2 = block_sum(squares);
}

template <typename T>
__global__ void write_moments(Rows<T> all, Accumulator<T>* means, Accumulator<T>* m2s) {
  for (std::int64_t row = blockIdx.x; row < all.rows; row += gridDim.x) {
    Accumulator<T> mean, m2;
    block_moments(all, row, Centre::kMean, mean, m2);
    if (threadIdx.x == 0) means[row] = mean, m2s[row] = m2;
  }
}

template <typename T>
__device__ void normalize(const Rows<T>& all, std::int64_t row, Accumulator<T> mean, Accumulator<T> rstd,
                          Element<T>* y) {
  for (std::int64_t i = threadIdx.x; i < all.c; i += kThreads) {
    y[row * all.c + i] = stored<Element<T>>((all.value(row, i) - mean) * rstd * all.factor(i) + all.shift(i));
  }
}

template <typename T>
__global__ void normalize_rows(Rows<T> all, Accumulator<T> eps, Centre centre, Accumulator<T>* means,
                               Accumulator<T>* rstds, Element<T>* y) {
  using R = Accumulator<T>;
  for (std::int64_t row = blockIdx.x; row < all.rows; row += gridDim.x) {
    R mean, m2;
    block_moments(all, row, centre, mean, m2);
    const R rstd = R(1) / sqrt(m2 / static_cast<R>(all.c > 0 ? all.c : 1) + eps);
    if (threadIdx.x == 0) means[row] = mean, rstds[row] = rstd;
    normalize(all, row, mean, rstd, y);
  }
}

template <typename T>
__global__ void apply_rows(Rows<T> all, const Accumulator<T>* means, const Accumulator<T>* rstds,
                           Element<T>* y) {
  for (std::int64_t row = blockIdx.x; row < all.rows; row += gridDim.x) {
    normalize(all, row, means[row], rstds[row], y);
  }
}

/// Σ dy·gamma and Σ dy·gamma·x̂ of each row.
template <typename T>
__global__ void sum_rows(Rows<T> all, const Element<T>* dy, const Accumulator<T>* means,
                         const Accumulator<T>* rstds, Accumulator<T>* sums) {
  using R = Accumulator<T>;
  for (std::int64_t row = blockIdx.x; row < all.rows; row += gridDim.x) {
    R sum = 0, product = 0;
    for (std::int64_t i = threadIdx.x; i < all.c; i += kThreads) {
      const R g = load<R>(dy[row * all.c + i]) * all.factor(i);
      sum += g;
      product += g * (all.value(row, i) - means[row]) * rstds[row];
    }
    sum = block_sum(sum);
    product = block_sum(product);
    if (threadIdx.x == 0) sums[2 * row] = sum, sums[2 * row + 1] = product;
  }
}

template <typename T>
__global__ void backward_rows(Rows<T> all, const Element<T>* dy, const Accumulator<T>* means,
                              const Accumulator<T>* rstds, const Accumulator<T>* sums,
                              Accumulator<T> mean_share, Accumulator<T> share, Element<T>* dx) {
  using R = Accumulator<T>;
  for (std::int64_t row = blockIdx.x; row < all.rows; row += gridDim.x) {
    const R sum = sums[2 * row] * mean_share, product = sums[2 * row + 1] * share;
    for (std::int64_t i = threadIdx.x; i < all.c; i += kThreads) {
      const std::int64_t at = row * all.c + i;
      const R normalized = (all.value(row, i) - means[row]) * rstds[row];
      dx[at] =
          stored<Element<T>>(rstds[row] * (load<R>(dy[at]) * all.factor(i) - sum - normalized * product));
    }
  }
}

/// dy·x̂ and dy, the gradients of gamma and beta.
template <typename T>
struct AffineTerms {
  Rows<T> all;
  const Element<T>* dy;
  const Accumulator<T>*means, *rstds;

  struct Part {
    Accumulator<T> of_gamma, of_beta;
  };
  __device__ Part read(std::int64_t, std::int64_t row, std::int64_t i) const {
    const auto g = load<Accumulator<T>>(dy[row * all.c + i]);
    return {g * (all.value(row, i) - means[row]) * rstds[row], g};
  }
  __device__ void add(const Part& part, double (&sums)[2]) const {
    sums[0] += static_cast<double>(part.of_gamma);
    sums[1] += static_cast<double>(part.of_beta);
  }
};

template <typename R>
struct AffineGradients {
  R *dgamma, *dbeta;
  __device__ void operator()(std::int64_t i, const double (&sums)[2]) const {
    dgamma[i] = static_cast<R>(sums[0]);
    dbeta[i] = static_cast<R>(sums[1]);
  }
};

class Normalization : public NormalizationKernels {
 public:
  void row_moments(Context& context, const Array& x, Moments& moments) const override {
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      using R = Accumulator<T>;
      const Rows<T> all = rows_of<T>(x, {}, {});
      if (all.rows == 0) return;
      start_kernel(context, blocks_for(all.rows), write_moments<T>, all, moments.mean.data<R>(),
                   moments.m2.data<R>());
    });
  }

  void forward(Context& context, const Array& x, const Array& gamma, const Array& beta, double eps,
               Centre centre, NormStatistics& statistics, Array& y) const override {
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      using R = Accumulator<T>;
      const Rows<T> all = rows_of<T>(x, gamma, beta);
      if (all.rows == 0) return;
      start_kernel(context, blocks_for(all.rows), normalize_rows<T>, all, static_cast<R>(eps), centre,
                   statistics.mean.data<R>(), statistics.reciprocal_deviation.data<R>(), elements<T>(y));
    });
  }

  void apply(Context& context, const Array& x, const Array& gamma, const Array& beta,
             const NormStatistics& statistics, Array& y) const override {
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      using R = Accumulator<T>;
      const Rows<T> all = rows_of<T>(x, gamma, beta);
      if (all.rows == 0) return;
      start_kernel(context, blocks_for(all.rows), apply_rows<T>, all, statistics.mean.data<R>(),
                   statistics.reciprocal_deviation.data<R>(), elements<T>(y));
    });
  }

  void backward(Context& context, const Array& dy, const Array& x, const Array& gamma,
                const NormStatistics& statistics, Centre centre, const Array& row_sums_of_all,
                std::int64_t c_total, NormGradients& gradients) const override {
    const std::int64_t rows = x.shape().count(0, x.rank() - 1);
    Array sums = row_sums_of_all;
    if (!sums.defined()) {
      sums = Array(context, {rows, 2}, accumulator_of(x.dtype()), Purpose::kWorkspace);
      row_sums(context, dy, x, gamma, statistics, sums);
    }
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      using R = Accumulator<T>;
      const Rows<T> all = rows_of<T>(x, gamma, {});
      const R *const means = statistics.mean.data<R>(), *const rstds =
                                                            statistics.reciprocal_deviation.data<R>();
      const R share = R(1) / static_cast<R>(c_total);
      const bool centred = row_sums_of_all.defined() || centre == Centre::kMean;
      if (x.count() > 0) {
        start_kernel(context, blocks_for(rows), backward_rows<T>, all, elements<T>(dy), means, rstds,
                     sums.data<R>(), centred ? share : R(0), share, elements<T>(gradients.dx));
      }
      if (!gamma.defined()) return;
      column_sums<2>(context, 1, rows, all.c, AffineTerms<T>{all, elements<T>(dy), means, rstds},
                     AffineGradients<R>{gradients.dgamma.data<R>(), gradients.dbeta.data<R>()});
    });
  }

  void row_sums(Context& context, const Array& dy, const Array& x, const Array& gamma,
                const NormStatistics& statistics, Array& sums) const override {
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      using R = Accumulator<T>;
      const Rows<T> all = rows_of<T>(x, gamma, {});
      if (all.rows == 0) return;
      start_kernel(context, blocks_for(all.rows), sum_rows<T>, all, elements<T>(dy),
                   statistics.mean.data<R>(), statistics.reciprocal_deviation.data<R>(), sums.data<R>());
    });
  }
};

}  // namespace

template <>
const NormalizationKernels& kernels() {
  static const Normalization instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::cuda
