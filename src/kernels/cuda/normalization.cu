#include <algorithm>
#include <bit>

#include "array/raw_memory.h"
#include "kernels/cuda/column_sums.cuh"
#include "kernels/cuda/packet.cuh"
#include "kernels/front/normalization_kernels.h"

namespace jigsaw::inline kernels::cuda {

namespace {

/// The threads of a block over rows: `width` of them, 16 to 256 by the row's length alone, have one.
class RowThreads {
 public:
  /// @param packets  of a row.
  explicit RowThreads(std::int64_t packets)
      : width_(static_cast<int>(
            std::bit_ceil(static_cast<std::uint64_t>(std::clamp<std::int64_t>(packets, kLeast, kThreads))))) {
  }
  unsigned blocks(std::int64_t rows) const { return blocks_for((rows + of_block() - 1) / of_block()); }

  /// Calls f(row) for the rows of this thread; f may wait for the block, and so is called beyond the rows,
  /// too.
  template <typename F>
  __device__ void for_rows(std::int64_t rows, const F& f) const {
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * of_block();
    for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * of_block(); first < rows; first += step)
      f(first + static_cast<int>(threadIdx.x) / width_);
  }
  /// Calls f(i) for the first element of each packet of kOnce that this thread has of a row of c.
  template <int kOnce, typename F>
  __device__ void for_packets_of_row(std::int64_t c, const F& f) const {
    for (std::int64_t i = number() * kOnce; i < c; i += width_ * kOnce) f(i);
  }
  /// Among those of its row.
  __device__ int number() const { return static_cast<int>(threadIdx.x) % width_; }

  /// Σ over the threads of a row, in a fixed order; all of them get it. All threads of the block call it.
  template <typename R, int N>
  __device__ void sum(R (&values)[N]) const {
    group_sums(width_, values);
  }

 private:
  static constexpr std::int64_t kLeast = 16;
  __host__ __device__ int of_block() const { return kThreads / width_; }

  int width_;
};

/// What the kernels of one LayerNorm read: T is the type of x, R of statistics, gamma and beta (null: ones
/// and zeros).
template <typename T>
struct Rows {
  using R = Accumulator<T>;
  static constexpr int kCount = kPacket<Element<T>>;
  std::int64_t rows, c;
  const Element<T>* x;
  const R *gamma, *beta;
  bool aligned;  ///< all arrays' packets are: the order of sums does not follow from it

  /// Elements from number i on of an array whose rows are of c, or of one row.
  template <typename E, int kOnce>
  __device__ void read(const E* from, std::int64_t i, R (&values)[kOnce]) const {
    if (aligned) return read_packet(from, i, values);
    for (int k = 0; k < kOnce; ++k) values[k] = load<R>(from[i + k]);
  }
  template <int kOnce>
  __device__ void write(Element<T>* to, std::int64_t i, const R (&values)[kOnce]) const {
    if (aligned) return write_packet(to, i, values);
    for (int k = 0; k < kOnce; ++k) to[i + k] = stored<Element<T>>(values[k]);
  }
  template <int kOnce>
  __device__ void read_factors(std::int64_t i, R (&factors)[kOnce]) const {
    for (R& factor : factors) factor = R(1);
    if (gamma != nullptr) read(gamma, i, factors);
  }
  template <int kOnce>
  __device__ void read_shifts(std::int64_t i, R (&shifts)[kOnce]) const {
    for (R& shift : shifts) shift = R(0);
    if (beta != nullptr) read(beta, i, shifts);
  }
  __device__ R value(std::int64_t row, std::int64_t i) const { return load<R>(x[row * c + i]); }
  /// Of the row, none beyond the last one.
  __device__ std::int64_t length(std::int64_t row) const { return row < rows ? c : 0; }
};

/// @param others  that are read or written besides.
template <typename T, typename... E>
Rows<T> rows_of(const Array& x, const Array& gamma, const Array& beta, const E*... others) {
  using R = Accumulator<T>;
  constexpr int kCount = Rows<T>::kCount;
  Rows<T> all{x.shape().count(0, x.rank() - 1),
              x.shape().back(),
              elements<T>(x),
              gamma.defined() ? gamma.data<R>() : nullptr,
              beta.defined() ? beta.data<R>() : nullptr,
              false};
  all.aligned = begin_packets<kCount>(all.x, others...) && begin_packets<kCount>(all.gamma, all.beta);
  return all;
}

/// Mean and Σ (x − mean)² of a row; about zero 0 and Σ x².
template <int kOnce, typename T>
__device__ void row_moments(const RowThreads& threads, const Rows<T>& all, std::int64_t row, Centre centre,
                            Accumulator<T>& mean, Accumulator<T>& m2) {
  using R = Accumulator<T>;
  const std::int64_t c = all.length(row);
  R sum[1] = {}, squares[1] = {}, values[kOnce];
  if (centre == Centre::kMean) {
    threads.for_packets_of_row<kOnce>(c, [&](std::int64_t i) {
      all.read(all.x, row * all.c + i, values);
      for (const R value : values) sum[0] += value;
    });
    threads.sum(sum);
  }
  mean = c > 0 ? sum[0] / static_cast<R>(c) : R(0);
  threads.for_packets_of_row<kOnce>(c, [&](std::int64_t i) {
    all.read(all.x, row * all.c + i, values);
    for (const R value : values) squares[0] += (value - mean) * (value - mean);
  });
  threads.sum(squares);
  m2 = squares[0];
}

template <typename T, int kOnce>
__global__ void write_moments(RowThreads threads, Rows<T> all, Accumulator<T>* means, Accumulator<T>* m2s) {
  threads.for_rows(all.rows, [&](std::int64_t row) {
    Accumulator<T> mean, m2;
    row_moments<kOnce>(threads, all, row, Centre::kMean, mean, m2);
    if (row < all.rows && threads.number() == 0) means[row] = mean, m2s[row] = m2;
  });
}

template <int kOnce, typename T>
__device__ void normalize(const RowThreads& threads, const Rows<T>& all, std::int64_t row,
                          Accumulator<T> mean, Accumulator<T> rstd, Element<T>* y) {
  using R = Accumulator<T>;
  threads.for_packets_of_row<kOnce>(all.length(row), [&](std::int64_t i) {
    R values[kOnce], factors[kOnce], shifts[kOnce];
    all.read(all.x, row * all.c + i, values);
    all.read_factors(i, factors);
    all.read_shifts(i, shifts);
    for (int k = 0; k < kOnce; ++k) values[k] = (values[k] - mean) * rstd * factors[k] + shifts[k];
    all.write(y, row * all.c + i, values);
  });
}

template <typename T, int kOnce>
__global__ void normalize_rows(RowThreads threads, Rows<T> all, Accumulator<T> eps, Centre centre,
                               Accumulator<T>* means, Accumulator<T>* rstds, Element<T>* y) {
  using R = Accumulator<T>;
  threads.for_rows(all.rows, [&](std::int64_t row) {
    R mean, m2;
    row_moments<kOnce>(threads, all, row, centre, mean, m2);
    const R rstd = R(1) / sqrt(m2 / static_cast<R>(all.c > 0 ? all.c : 1) + eps);
    if (row < all.rows && threads.number() == 0) means[row] = mean, rstds[row] = rstd;
    normalize<kOnce>(threads, all, row, mean, rstd, y);
  });
}

template <typename T, int kOnce>
__global__ void apply_rows(RowThreads threads, Rows<T> all, const Accumulator<T>* means,
                           const Accumulator<T>* rstds, Element<T>* y) {
  threads.for_rows(all.rows, [&](std::int64_t row) {
    if (row < all.rows) normalize<kOnce>(threads, all, row, means[row], rstds[row], y);
  });
}

/// What backward reads besides, and of a row its statistics.
template <typename T>
struct Slopes {
  using R = Accumulator<T>;
  const Element<T>* dy;
  const R *means, *rstds;

  __device__ R mean(const Rows<T>& all, std::int64_t row) const { return row < all.rows ? means[row] : R(0); }
  __device__ R rstd(const Rows<T>& all, std::int64_t row) const { return row < all.rows ? rstds[row] : R(0); }
};

/// Σ dy·gamma and Σ dy·gamma·x̂ of a row.
template <int kOnce, typename T>
__device__ void row_slopes(const RowThreads& threads, const Rows<T>& all, const Slopes<T>& slopes,
                           std::int64_t row, Accumulator<T> (&sums)[2]) {
  using R = Accumulator<T>;
  const R mean = slopes.mean(all, row), rstd = slopes.rstd(all, row);
  sums[0] = sums[1] = 0;
  threads.for_packets_of_row<kOnce>(all.length(row), [&](std::int64_t i) {
    R values[kOnce], slope[kOnce], factors[kOnce];
    all.read(all.x, row * all.c + i, values);
    all.read(slopes.dy, row * all.c + i, slope);
    all.read_factors(i, factors);
    for (int k = 0; k < kOnce; ++k) {
      const R g = slope[k] * factors[k];
      sums[0] += g;
      sums[1] += g * (values[k] - mean) * rstd;
    }
  });
  threads.sum(sums);
}

template <typename T, int kOnce>
__global__ void sum_rows(RowThreads threads, Rows<T> all, Slopes<T> slopes, Accumulator<T>* sums) {
  threads.for_rows(all.rows, [&](std::int64_t row) {
    Accumulator<T> own[2];
    row_slopes<kOnce>(threads, all, slopes, row, own);
    if (row < all.rows && threads.number() == 0) sums[2 * row] = own[0], sums[2 * row + 1] = own[1];
  });
}

/// @param sums  of the rows' slopes, or null: formed here.
template <typename T, int kOnce>
__global__ void backward_rows(RowThreads threads, Rows<T> all, Slopes<T> slopes, const Accumulator<T>* sums,
                              Accumulator<T> mean_share, Accumulator<T> share, Element<T>* dx) {
  using R = Accumulator<T>;
  threads.for_rows(all.rows, [&](std::int64_t row) {
    R own[2] = {};
    if (sums == nullptr) {
      row_slopes<kOnce>(threads, all, slopes, row, own);
    } else if (row < all.rows) {
      own[0] = sums[2 * row], own[1] = sums[2 * row + 1];
    }
    const R mean = slopes.mean(all, row), rstd = slopes.rstd(all, row), sum = own[0] * mean_share,
            product = own[1] * share;
    threads.for_packets_of_row<kOnce>(all.length(row), [&](std::int64_t i) {
      R values[kOnce], slope[kOnce], factors[kOnce];
      all.read(all.x, row * all.c + i, values);
      all.read(slopes.dy, row * all.c + i, slope);
      all.read_factors(i, factors);
      for (int k = 0; k < kOnce; ++k)
        values[k] = rstd * (slope[k] * factors[k] - sum - (values[k] - mean) * rstd * product);
      all.write(dx, row * all.c + i, values);
    });
  });
}

/// dy·x̂ and dy, the gradients of gamma and beta.
template <typename T>
struct AffineTerms {
  Rows<T> all;
  Slopes<T> slopes;

  struct Part {
    Accumulator<T> of_gamma, of_beta;
  };
  __device__ Part read(std::int64_t, std::int64_t row, std::int64_t i) const {
    const auto g = load<Accumulator<T>>(slopes.dy[row * all.c + i]);
    return {g * (all.value(row, i) - slopes.means[row]) * slopes.rstds[row], g};
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

/// Starts one of the kernels of rows: `kernel` gives that for packets of so many elements.
template <typename T, typename Kernel, typename... Arguments>
void start_rows(Context& context, const Rows<T>& all, const Kernel& kernel, const Arguments&... arguments) {
  const auto start = [&](auto once) {
    const RowThreads threads((all.c + once.value - 1) / once.value);
    start_kernel(context, threads.blocks(all.rows), kernel(once), threads, all, arguments...);
  };
  if (all.rows == 0) return;
  if (all.c % Rows<T>::kCount == 0) return start(std::integral_constant<int, Rows<T>::kCount>());
  start(std::integral_constant<int, 1>());
}

class Normalization : public NormalizationKernels {
 public:
  void row_moments(Context& context, const Array& x, Moments& moments) const override {
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      using R = Accumulator<T>;
      const Rows<T> all = rows_of<T>(x, {}, {});
      start_rows(
          context, all, [](auto once) { return write_moments<T, once.value>; }, moments.mean.data<R>(),
          moments.m2.data<R>());
    });
  }

  void forward(Context& context, const Array& x, const Array& gamma, const Array& beta, double eps,
               Centre centre, NormStatistics& statistics, Array& y) const override {
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      using R = Accumulator<T>;
      const Rows<T> all = rows_of<T>(x, gamma, beta, elements<T>(y));
      start_rows(
          context, all, [](auto once) { return normalize_rows<T, once.value>; }, static_cast<R>(eps), centre,
          statistics.mean.data<R>(), statistics.reciprocal_deviation.data<R>(), elements<T>(y));
    });
  }

  void apply(Context& context, const Array& x, const Array& gamma, const Array& beta,
             const NormStatistics& statistics, Array& y) const override {
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      using R = Accumulator<T>;
      const Rows<T> all = rows_of<T>(x, gamma, beta, elements<T>(y));
      start_rows(
          context, all, [](auto once) { return apply_rows<T, once.value>; }, statistics.mean.data<R>(),
          statistics.reciprocal_deviation.data<R>(), elements<T>(y));
    });
  }

  void backward(Context& context, const Array& dy, const Array& x, const Array& gamma,
                const NormStatistics& statistics, Centre centre, const Array& row_sums, std::int64_t c_total,
                NormGradients& gradients) const override {
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      using R = Accumulator<T>;
      const Slopes<T> slopes = slopes_of<T>(dy, statistics);
      const Rows<T> all = rows_of<T>(x, gamma, {}, slopes.dy, elements<T>(gradients.dx));
      const R share = R(1) / static_cast<R>(c_total);
      const bool centred = row_sums.defined() || centre == Centre::kMean;
      if (x.count() > 0) {
        start_rows(
            context, all, [](auto once) { return backward_rows<T, once.value>; }, slopes,
            row_sums.defined() ? row_sums.data<R>() : nullptr, centred ? share : R(0), share,
            elements<T>(gradients.dx));
      }
      if (!gamma.defined()) return;
      column_sums<2>(context, 1, all.rows, all.c, AffineTerms<T>{all, slopes},
                     AffineGradients<R>{gradients.dgamma.data<R>(), gradients.dbeta.data<R>()});
    });
  }

  void row_sums(Context& context, const Array& dy, const Array& x, const Array& gamma,
                const NormStatistics& statistics, Array& sums) const override {
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const Slopes<T> slopes = slopes_of<T>(dy, statistics);
      const Rows<T> all = rows_of<T>(x, gamma, {}, slopes.dy);
      start_rows(
          context, all, [](auto once) { return sum_rows<T, once.value>; }, slopes,
          sums.data<Accumulator<T>>());
    });
  }

 private:
  template <typename T>
  static Slopes<T> slopes_of(const Array& dy, const NormStatistics& statistics) {
    using R = Accumulator<T>;
    return {elements<T>(dy), statistics.mean.data<R>(), statistics.reciprocal_deviation.data<R>()};
  }
};

}  // namespace

template <>
const NormalizationKernels& kernels() {
  static const Normalization instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::cuda
