#include <cmath>
#include <vector>

#include "array/raw_memory.h"
#include "kernels/front/normalization_kernels.h"

namespace jigsaw::inline kernels::reference {

namespace {

/// One LayerNorm's rows, read and written as doubles: T is the type of x, statistics are of type R.
template <typename T>
struct Rows {
  using R = Accumulator<T>;

  explicit Rows(const Array& array)
      : x(array), c(array.shape().back()), rows(array.shape().count(0, array.rank() - 1)) {}

  static double read(const Array& array, std::int64_t i) { return static_cast<double>(array.data<T>()[i]); }
  static double statistic(const Array& array, std::int64_t row) {
    return static_cast<double>(array.data<R>()[row]);
  }
  static double affine(const Array& vector, std::int64_t column, double otherwise) {
    return vector.defined() ? static_cast<double>(vector.data<R>()[column]) : otherwise;
  }

  const Array& x;
  std::int64_t c, rows;
};

struct RowMoments {
  double mean = 0, m2 = 0;
};

template <typename T>
RowMoments moments_of(const Rows<T>& all, std::int64_t row, Centre centre) {
  RowMoments moments;
  if (all.c == 0) return moments;
  for (std::int64_t i = 0; i < all.c && centre == Centre::kMean; ++i)
    moments.mean += all.read(all.x, row * all.c + i);
  moments.mean /= static_cast<double>(all.c);
  for (std::int64_t i = 0; i < all.c; ++i) {
    const double deviation = all.read(all.x, row * all.c + i) - moments.mean;
    moments.m2 += deviation * deviation;
  }
  return moments;
}

template <typename T>
void apply_typed(const Array& x, const Array& gamma, const Array& beta, const NormStatistics& statistics,
                 Array& y) {
  const Rows<T> all(x);
  for (std::int64_t row = 0; row < all.rows; ++row) {
    const double mean = all.statistic(statistics.mean, row);
    const double rstd = all.statistic(statistics.reciprocal_deviation, row);
    for (std::int64_t i = 0; i < all.c; ++i) {
      const double normalised = (all.read(x, row * all.c + i) - mean) * rstd;
      y.data<T>()[row * all.c + i] =
          static_cast<T>(normalised * all.affine(gamma, i, 1.0) + all.affine(beta, i, 0.0));
    }
  }
}

/// Σ dy·gamma and Σ dy·gamma·x̂ of one row.
template <typename T>
std::pair<double, double> sums_of(const Rows<T>& all, const Array& dy, const Array& gamma,
                                  const NormStatistics& statistics, std::int64_t row) {
  double sum = 0, product = 0;
  for (std::int64_t i = 0; i < all.c; ++i) {
    const std::int64_t at = row * all.c + i;
    const double g = all.read(dy, at) * all.affine(gamma, i, 1.0);
    sum += g;
    product += g * (all.read(all.x, at) - all.statistic(statistics.mean, row)) *
               all.statistic(statistics.reciprocal_deviation, row);
  }
  return {sum, product};
}

template <typename T>
void backward_typed(const Array& dy, const Array& x, const Array& gamma, const NormStatistics& statistics,
                    Centre centre, const Array& row_sums, std::int64_t c_total, NormGradients& gradients) {
  using R = Accumulator<T>;
  const Rows<T> all(x);
  std::vector<double> dgamma(static_cast<std::size_t>(all.c), 0.0), dbeta(dgamma);
  for (std::int64_t row = 0; row < all.rows; ++row) {
    auto [sum, product] = sums_of(all, dy, gamma, statistics, row);
    if (centre == Centre::kZero) sum = 0;
    if (row_sums.defined()) {
      sum = static_cast<double>(row_sums.data<R>()[2 * row]);
      product = static_cast<double>(row_sums.data<R>()[2 * row + 1]);
    }
    const double rstd = all.statistic(statistics.reciprocal_deviation, row);
    for (std::int64_t i = 0; i < all.c; ++i) {
      const std::int64_t at = row * all.c + i;
      const double normalised = (all.read(x, at) - all.statistic(statistics.mean, row)) * rstd;
      const double mean_part = (sum + normalised * product) / static_cast<double>(c_total);
      gradients.dx.data<T>()[at] =
          static_cast<T>(rstd * (all.read(dy, at) * all.affine(gamma, i, 1.0) - mean_part));
      dgamma[static_cast<std::size_t>(i)] += all.read(dy, at) * normalised;
      dbeta[static_cast<std::size_t>(i)] += all.read(dy, at);
    }
  }
  if (!gamma.defined()) return;
  for (std::int64_t i = 0; i < all.c; ++i) {
    gradients.dgamma.data<R>()[i] = static_cast<R>(dgamma[static_cast<std::size_t>(i)]);
    gradients.dbeta.data<R>()[i] = static_cast<R>(dbeta[static_cast<std::size_t>(i)]);
  }
}

class Normalization : public NormalizationKernels {
 public:
  void row_moments(Context&, const Array& x, Moments& moments) const override {
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      using R = Accumulator<T>;
      const Rows<T> all(x);
      for (std::int64_t row = 0; row < all.rows; ++row) {
        const RowMoments found = moments_of(all, row, Centre::kMean);
        moments.mean.data<R>()[row] = static_cast<R>(found.mean);
        moments.m2.data<R>()[row] = static_cast<R>(found.m2);
      }
    });
  }

  void forward(Context& context, const Array& x, const Array& gamma, const Array& beta, double eps,
               Centre centre, NormStatistics& statistics, Array& y) const override {
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      using R = Accumulator<T>;
      const Rows<T> all(x);
      for (std::int64_t row = 0; row < all.rows; ++row) {
        const RowMoments found = moments_of(all, row, centre);
        const double variance = all.c > 0 ? found.m2 / static_cast<double>(all.c) : 0.0;
        statistics.mean.data<R>()[row] = static_cast<R>(found.mean);
        statistics.reciprocal_deviation.data<R>()[row] = static_cast<R>(1.0 / std::sqrt(variance + eps));
      }
    });
    apply(context, x, gamma, beta, statistics, y);
  }

  void apply(Context&, const Array& x, const Array& gamma, const Array& beta,
             const NormStatistics& statistics, Array& y) const override {
    visit(x.dtype(), [&](auto zero) { apply_typed<decltype(zero)>(x, gamma, beta, statistics, y); });
  }

  void backward(Context&, const Array& dy, const Array& x, const Array& gamma,
                const NormStatistics& statistics, Centre centre, const Array& row_sums, std::int64_t c_total,
                NormGradients& gradients) const override {
    visit(x.dtype(), [&](auto zero) {
      backward_typed<decltype(zero)>(dy, x, gamma, statistics, centre, row_sums, c_total, gradients);
    });
  }

  void row_sums(Context&, const Array& dy, const Array& x, const Array& gamma,
                const NormStatistics& statistics, Array& sums) const override {
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      using R = Accumulator<T>;
      const Rows<T> all(x);
      for (std::int64_t row = 0; row < all.rows; ++row) {
        const auto [sum, product] = sums_of(all, dy, gamma, statistics, row);
        sums.data<R>()[2 * row] = static_cast<R>(sum);
        sums.data<R>()[2 * row + 1] = static_cast<R>(product);
      }
    });
  }
};

}  // namespace

template <>
const NormalizationKernels& kernels() {
  static const Normalization instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::reference
