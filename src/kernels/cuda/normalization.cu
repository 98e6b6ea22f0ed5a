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
  /// Where each block sums its rows up: by the shape alone as many as give all multiprocessors work, each of
  /// rows enough that sums are few beside them, and of so few for a thread that it sums them in float32.
  unsigned summing_blocks(std::int64_t rows) const {
    constexpr std::int64_t kBlocks = 1024, kLeastOfBlock = 16, kMostOfThread = 64;
    const std::int64_t of_thread =
        std::clamp<std::int64_t>((rows + kBlocks * of_block() - 1) / (kBlocks * of_block()),
                                 kLeastOfBlock / of_block(), kMostOfThread);
    return blocks((rows + of_thread - 1) / of_thread);
  }

  /// Calls f(row) for the rows of this thread; f may wait for the block, and so is called beyond the rows,
  /// too.
  template <typename F>
  __device__ void for_rows(std::int64_t rows, const F& f) const {
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * of_block();
    for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * of_block(); first < rows; first += step)
      f(first + static_cast<int>(threadIdx.x) / width_);
  }
  /// The first element of this thread's n-th packet of kOnce of a row.
  template <int kOnce>
  __device__ int packet(int n) const {
    return (number() + n * width_) * kOnce;
  }
  /// Calls f(i, n) for each n-th packet that this thread has of a row of c, from element i on: one of kHeld
  /// at most, or of any number where kHeld is 0.
  template <int kOnce, int kHeld, typename F>
  __device__ void for_packets_of_row(std::int64_t c, const F& f) const {
    if constexpr (kHeld == 0) {
      for (std::int64_t i = packet<kOnce>(0); i < c; i += width_ * kOnce) f(i, 0);
    } else {
#pragma unroll
      for (int n = 0; n < kHeld; ++n) {
        if (const int i = packet<kOnce>(n); i < static_cast<int>(c)) f(i, n);
      }
    }
  }
  /// Among those of its row.
  __device__ int number() const {
    return static_cast<int>(threadIdx.x) % width_;
  }

  /// Σ over the threads of a row, in a fixed order; all of them get it. All threads of the block call it.
  template <typename R, int N>
  __device__ void sum(R (&values)[N]) const {
    group_sums(width_, values);
  }
  /// The rows that a block takes at a time, as lanes of what is summed over rows.
  __device__ Lanes lanes() const {
    return Lanes(width_);
  }

 private:
  static constexpr std::int64_t kLeast = 16;
  __host__ __device__ int of_block() const {
    return kThreads / width_;
  }

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

  template <int kOnce>
  __device__ void read_factors(std::int64_t i, R (&factors)[kOnce]) const {
    for (R& factor : factors) factor = R(1);
    if (gamma != nullptr) read_packet(gamma, i, factors);
  }
  template <int kOnce>
  __device__ void read_shifts(std::int64_t i, R (&shifts)[kOnce]) const {
    for (R& shift : shifts) shift = R(0);
    if (beta != nullptr) read_packet(beta, i, shifts);
  }
  __device__ R value(std::int64_t row, std::int64_t i) const { return load<R>(x[row * c + i]); }
  /// Of the row, none beyond the last one.
  __device__ std::int64_t length(std::int64_t row) const { return row < rows ? c : 0; }
};

template <typename T>
Rows<T> rows_of(const Array& x, const Array& gamma, const Array& beta) {
  using R = Accumulator<T>;
  return {x.shape().count(0, x.rank() - 1), x.shape().back(), elements<T>(x), gamma.data<R>(),
          beta.data<R>()};
}

/// What a thread has of one row: kHeld packets at most, which are read once, or any number (kHeld is 0), read
/// each time. All that are held are under way together, for no branch parts them: beyond the row, or the
/// rows, the last ones are read once more.
template <typename T, int kOnce, int kHeld>
class RowPart {
 public:
  __device__ RowPart(const RowThreads& threads, const Rows<T>& all, const Element<T>* from, std::int64_t row)
      : from_(from + (row < all.rows ? row : all.rows - 1) * all.c) {
#pragma unroll
    for (int n = 0; n < kHeld; ++n) {
      const int i = threads.packet<kOnce>(n), last = static_cast<int>(all.c) - kOnce;
      held_[n] = *reinterpret_cast<const Packet<Element<T>, kOnce>*>(from_ + (i < last ? i : last));
    }
  }
  /// The n-th packet, of elements from number i of the row on.
  __device__ void read(std::int64_t i, int n, Accumulator<T> (&values)[kOnce]) const {
    if constexpr (kHeld == 0) {
      read_packet(from_, i, values);
    } else {
      for (int k = 0; k < kOnce; ++k) values[k] = load<Accumulator<T>>(held_[n].elements[k]);
    }
  }

 private:
  const Element<T>* from_;
  Packet<Element<T>, kOnce> held_[std::max(kHeld, 1)];
};

/// How many blocks a multiprocessor is to have registers for, where each thread keeps so many numbers of the
/// type of x, and so many of its sums, for each element that it holds: as many as leave 40 for its work.
/// Float64 and single elements, which are rare, are bound to nothing.
template <typename T, int kOnce, int kHeld>
constexpr int blocks_of(int elements, int sums) {
  constexpr int kAll = 65536 / kThreads, kWork = 40, kLeast = 8;
  if (kOnce == 1 || sizeof(T) > 4) return 1;
  const auto bytes = elements * sizeof(T) + sums * sizeof(Accumulator<T>);
  return kAll / (std::max(kHeld * kOnce * static_cast<int>(bytes) / 4, kLeast) + kWork);
}

/// Mean and Σ (x − mean)² of a row; about zero 0 and Σ x².
template <typename T, int kOnce, int kHeld>
__device__ void row_moments(const RowThreads& threads, const Rows<T>& all, std::int64_t row,
                            const RowPart<T, kOnce, kHeld>& x, Centre centre, Accumulator<T>& mean,
                            Accumulator<T>& m2) {
  using R = Accumulator<T>;
  const std::int64_t c = all.length(row);
  R sum[1] = {}, squares[1] = {}, values[kOnce];
  if (centre == Centre::kMean) {
    threads.for_packets_of_row<kOnce, kHeld>(c, [&](std::int64_t i, int n) {
      x.read(i, n, values);
      for (const R value : values) sum[0] += value;
    });
    threads.sum(sum);
  }
  mean = c > 0 ? sum[0] / static_cast<R>(c) : R(0);
  threads.for_packets_of_row<kOnce, kHeld>(c, [&](std::int64_t i, int n) {
    x.read(i, n, values);
    for (const R value : values) squares[0] += (value - mean) * (value - mean);
  });
  threads.sum(squares);
  m2 = squares[0];
}

template <typename T, int kOnce, int kHeld>
__global__ void write_moments(RowThreads threads, Rows<T> all, Accumulator<T>* means, Accumulator<T>* m2s) {
  threads.for_rows(all.rows, [&](std::int64_t row) {
    const RowPart<T, kOnce, kHeld> x(threads, all, all.x, row);
    Accumulator<T> mean, m2;
    row_moments(threads, all, row, x, Centre::kMean, mean, m2);
    if (row < all.rows && threads.number() == 0) means[row] = mean, m2s[row] = m2;
  });
}

template <typename T, int kOnce, int kHeld>
__device__ void normalize(const RowThreads& threads, const Rows<T>& all, std::int64_t row,
                          const RowPart<T, kOnce, kHeld>& x, Accumulator<T> mean, Accumulator<T> rstd,
                          Element<T>* y) {
  using R = Accumulator<T>;
  threads.for_packets_of_row<kOnce, kHeld>(all.length(row), [&](std::int64_t i, int n) {
    R values[kOnce], factors[kOnce], shifts[kOnce];
    x.read(i, n, values);
    all.read_factors(i, factors);
    all.read_shifts(i, shifts);
    for (int k = 0; k < kOnce; ++k) values[k] = (values[k] - mean) * rstd * factors[k] + shifts[k];
    write_packet(y, row * all.c + i, values);
  });
}

template <typename T, int kOnce, int kHeld>
__global__ void __launch_bounds__(kThreads, (blocks_of<T, kOnce, kHeld>(1, 0)))
    normalize_rows(RowThreads threads, Rows<T> all, Accumulator<T> eps, Centre centre, Accumulator<T>* means,
                   Accumulator<T>* rstds, Element<T>* y) {
  using R = Accumulator<T>;
  threads.for_rows(all.rows, [&](std::int64_t row) {
    const RowPart<T, kOnce, kHeld> x(threads, all, all.x, row);
    R mean, m2;
    row_moments(threads, all, row, x, centre, mean, m2);
    const R rstd = R(1) / sqrt(m2 / static_cast<R>(all.c > 0 ? all.c : 1) + eps);
    if (row < all.rows && threads.number() == 0) means[row] = mean, rstds[row] = rstd;
    normalize(threads, all, row, x, mean, rstd, y);
  });
}

template <typename T, int kOnce>
__global__ void apply_rows(RowThreads threads, Rows<T> all, const Accumulator<T>* means,
                           const Accumulator<T>* rstds, Element<T>* y) {
  threads.for_rows(all.rows, [&](std::int64_t row) {
    const RowPart<T, kOnce, 0> x(threads, all, all.x, row);
    if (row < all.rows) normalize(threads, all, row, x, means[row], rstds[row], y);
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
template <typename T, int kOnce, int kHeld>
__device__ void row_slopes(const RowThreads& threads, const Rows<T>& all, std::int64_t row,
                           const RowPart<T, kOnce, kHeld>& x, const RowPart<T, kOnce, kHeld>& dy,
                           Accumulator<T> mean, Accumulator<T> rstd, Accumulator<T> (&sums)[2]) {
  using R = Accumulator<T>;
  sums[0] = sums[1] = 0;
  threads.for_packets_of_row<kOnce, kHeld>(all.length(row), [&](std::int64_t i, int n) {
    R values[kOnce], slope[kOnce], factors[kOnce];
    x.read(i, n, values);
    dy.read(i, n, slope);
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
    const RowPart<T, kOnce, 0> x(threads, all, all.x, row), dy(threads, all, slopes.dy, row);
    Accumulator<T> own[2];
    row_slopes(threads, all, row, x, dy, slopes.mean(all, row), slopes.rstd(all, row), own);
    if (row < all.rows && threads.number() == 0) sums[2 * row] = own[0], sums[2 * row + 1] = own[1];
  });
}

/// The sums over rows of dy·x̂ and dy, of the channels that a thread holds. Where these are several packets
/// the block has one row at a time.
template <typename R, int kOnce, int kHeld>
struct AffineSums {
  R of_gamma[kHeld][kOnce] = {}, of_beta[kHeld][kOnce] = {};

  __device__ void add(int n, int k, R slope, R normalized) {
    of_gamma[n][k] += slope * normalized;
    of_beta[n][k] += slope;
  }
  /// Those of a block to where its c of gamma's stand, and c of beta's behind them.
  __device__ void write(const RowThreads& threads, std::int64_t c, R* to) {
    const Lanes lanes = threads.lanes();
    if constexpr (kHeld == 1) {
#pragma unroll
      for (int k = 0; k < kOnce; ++k) {
        double both[] = {static_cast<double>(of_gamma[0][k]), static_cast<double>(of_beta[0][k])};
        add_lanes(lanes, both);
        of_gamma[0][k] = static_cast<R>(both[0]), of_beta[0][k] = static_cast<R>(both[1]);
      }
    }
    threads.for_packets_of_row<kOnce, kHeld>(lanes.lane == 0 ? c : 0, [&](std::int64_t i, int n) {
      write_packet(to, i, of_gamma[n]);
      write_packet(to + c, i, of_beta[n]);
    });
  }
};
/// There are none of channels that are not held.
template <typename R, int kOnce>
struct AffineSums<R, kOnce, 0> {
  __device__ void add(int, int, R, R) {}
  __device__ void write(const RowThreads&, std::int64_t, R*) {}
};

/// @param sums     of the rows' slopes, or null: formed here.
/// @param partial  gets the affine sums of each block, [blocks, 2, c]; or null.
template <typename T, int kOnce, int kHeld>
__global__ void __launch_bounds__(kThreads, (blocks_of<T, kOnce, kHeld>(2, 2)))
    backward_rows(RowThreads threads, Rows<T> all, Slopes<T> slopes, const Accumulator<T>* sums,
                  Accumulator<T> mean_share, Accumulator<T> share, Element<T>* dx, Accumulator<T>* partial) {
  using R = Accumulator<T>;
  AffineSums<R, kOnce, kHeld> affine;
  threads.for_rows(all.rows, [&](std::int64_t row) {
    const RowPart<T, kOnce, kHeld> x(threads, all, all.x, row), dy(threads, all, slopes.dy, row);
    const R mean = slopes.mean(all, row), rstd = slopes.rstd(all, row);
    R own[2] = {};
    if (sums == nullptr) {
      row_slopes(threads, all, row, x, dy, mean, rstd, own);
    } else if (row < all.rows) {
      own[0] = sums[2 * row], own[1] = sums[2 * row + 1];
    }
    const R sum = own[0] * mean_share, product = own[1] * share;
    threads.for_packets_of_row<kOnce, kHeld>(all.length(row), [&](std::int64_t i, int n) {
      R values[kOnce], slope[kOnce], factors[kOnce];
      x.read(i, n, values);
      dy.read(i, n, slope);
      all.read_factors(i, factors);
      for (int k = 0; k < kOnce; ++k) {
        const R normalized = (values[k] - mean) * rstd;
        affine.add(n, k, slope[k], normalized);
        values[k] = rstd * (slope[k] * factors[k] - sum - normalized * product);
      }
      write_packet(dx, row * all.c + i, values);
    });
  });
  if (partial != nullptr) affine.write(threads, all.c, partial + blockIdx.x * 2 * all.c);
}

/// A term of the gradients of gamma and beta.
template <typename R>
struct AffinePart {
  R of_gamma, of_beta;
  __device__ void add_to(double (&sums)[2]) const {
    sums[0] += static_cast<double>(of_gamma);
    sums[1] += static_cast<double>(of_beta);
  }
};
/// What backward_rows() wrote, or else dy·x̂ and dy.
template <typename R>
struct PartialTerms {
  using Part = AffinePart<R>;
  std::int64_t c;
  const R* partial;

  __device__ Part read(std::int64_t, std::int64_t block, std::int64_t i) const {
    return {partial[2 * block * c + i], partial[(2 * block + 1) * c + i]};
  }
  __device__ void add(const Part& part, double (&sums)[2]) const { part.add_to(sums); }
};
template <typename T>
struct RowTerms {
  using Part = AffinePart<Accumulator<T>>;
  Rows<T> all;
  Slopes<T> slopes;

  __device__ Part read(std::int64_t, std::int64_t row, std::int64_t i) const {
    const auto g = load<Accumulator<T>>(slopes.dy[row * all.c + i]);
    return {g * (all.value(row, i) - slopes.means[row]) * slopes.rstds[row], g};
  }
  __device__ void add(const Part& part, double (&sums)[2]) const { part.add_to(sums); }
};

template <typename R>
struct AffineGradients {
  R *dgamma, *dbeta;
  __device__ void operator()(std::int64_t i, const double (&sums)[2]) const {
    dgamma[i] = static_cast<R>(sums[0]);
    dbeta[i] = static_cast<R>(sums[1]);
  }
};

/// Calls f(threads, once, held) with the first of kHeld... that a thread's packets of a row do not exceed.
template <int kOnce, int kHeld, int... kMore, typename F>
void with_held(std::int64_t packets, const F& f) {
  if constexpr (sizeof...(kMore) > 0) {
    if (packets > kThreads * kHeld || packets == 0) return with_held<kOnce, kMore...>(packets, f);
  }
  f(RowThreads(packets), std::integral_constant<int, kOnce>(), std::integral_constant<int, kHeld>());
}
/// Calls f with the threads of rows, the elements of a packet, and how many packets a thread holds; 0: they
/// are more than registers should.
template <typename T, typename F>
void with_threads(const Rows<T>& all, const F& f) {
  constexpr int kCount = Rows<T>::kCount;
  if (all.c % kCount == 0) return with_held<kCount, 1, 2, 4, 0>(all.c / kCount, f);
  with_held<1, 1, 8, 0>(all.c, f);
}

/// What is read of x or beside it; a copy where the rows of x are whole packets, but what is read begins at
/// none, as views of flat parameters may.
Array placed(Context& context, const Array& x, const Array& array) {
  const auto packet = static_cast<std::int64_t>(kPacketBytes);
  const bool packets = x.shape().back() * size_of(x.dtype()) % packet == 0;
  if (!packets || array.count() == 0 || reinterpret_cast<std::uintptr_t>(array.raw()) % kPacketBytes == 0)
    return array;
  Array copy(context, array.shape(), array.dtype(), Purpose::kWorkspace);
  launched(context,
           cudaMemcpyAsync(copy.raw(), array.raw(), static_cast<std::size_t>(array.bytes()),
                           cudaMemcpyDeviceToDevice, stream_of(context)),
           "a copy");
  return copy;
}

/// Starts one of the kernels of rows: `kernel` gives that for packets of so many elements, so many held.
template <typename T, typename Kernel, typename... Arguments>
void start_rows(Context& context, const Rows<T>& all, const Kernel& kernel, const Arguments&... arguments) {
  if (all.rows == 0) return;
  with_threads(all, [&](const RowThreads& threads, auto once, auto held) {
    start_kernel(context, threads.blocks(all.rows), kernel(once, held), threads, all, arguments...);
  });
}

class Normalization : public NormalizationKernels {
 public:
  void row_moments(Context& context, const Array& x, Moments& moments) const override {
    const Array own = placed(context, x, x);
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      using R = Accumulator<T>;
      const Rows<T> all = rows_of<T>(own, {}, {});
      start_rows(
          context, all, [](auto once, auto held) { return write_moments<T, once.value, held.value>; },
          moments.mean.data<R>(), moments.m2.data<R>());
    });
  }

  void forward(Context& context, const Array& x, const Array& gamma, const Array& beta, double eps,
               Centre centre, NormStatistics& statistics, Array& y) const override {
    const Array own = placed(context, x, x), factors = placed(context, x, gamma),
                shifts = placed(context, x, beta);
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      using R = Accumulator<T>;
      const Rows<T> all = rows_of<T>(own, factors, shifts);
      start_rows(
          context, all, [](auto once, auto held) { return normalize_rows<T, once.value, held.value>; },
          static_cast<R>(eps), centre, statistics.mean.data<R>(), statistics.reciprocal_deviation.data<R>(),
          elements<T>(y));
    });
  }

  void apply(Context& context, const Array& x, const Array& gamma, const Array& beta,
             const NormStatistics& statistics, Array& y) const override {
    const Array own = placed(context, x, x), factors = placed(context, x, gamma),
                shifts = placed(context, x, beta);
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      using R = Accumulator<T>;
      const Rows<T> all = rows_of<T>(own, factors, shifts);
      start_rows(
          context, all, [](auto once, auto) { return apply_rows<T, once.value>; }, statistics.mean.data<R>(),
          statistics.reciprocal_deviation.data<R>(), elements<T>(y));
    });
  }

  void backward(Context& context, const Array& dy, const Array& x, const Array& gamma,
                const NormStatistics& statistics, Centre centre, const Array& row_sums, std::int64_t c_total,
                NormGradients& gradients) const override {
    const Array own = placed(context, x, x), slope = placed(context, x, dy),
                factors = placed(context, x, gamma);
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      using R = Accumulator<T>;
      const Slopes<T> slopes = slopes_of<T>(slope, statistics);
      const Rows<T> all = rows_of<T>(own, factors, {});
      const R share = R(1) / static_cast<R>(c_total);
      const bool centred = row_sums.defined() || centre == Centre::kMean;
      const AffineGradients<R> affine{gradients.dgamma.data<R>(), gradients.dbeta.data<R>()};
      with_threads(all, [&](const RowThreads& threads, auto once, auto held) {
        const bool sums_up = gamma.defined() && held.value > 0;
        const unsigned blocks = sums_up ? threads.summing_blocks(all.rows) : threads.blocks(all.rows);
        Array partial;
        if (sums_up)
          partial = Array(context, {blocks, 2, all.c}, statistics.mean.dtype(), Purpose::kWorkspace);
        if (x.count() > 0) {
          start_kernel(context, blocks, backward_rows<T, once.value, held.value>, threads, all, slopes,
                       row_sums.data<R>(), centred ? share : R(0), share, elements<T>(gradients.dx),
                       partial.data<R>());
        }
        if (sums_up) {
          column_sums<2>(context, 1, blocks, all.c, PartialTerms<R>{all.c, partial.data<R>()}, affine);
        } else if (gamma.defined()) {
          column_sums<2>(context, 1, all.rows, all.c, RowTerms<T>{all, slopes}, affine);
        }
      });
    });
  }

  void row_sums(Context& context, const Array& dy, const Array& x, const Array& gamma,
                const NormStatistics& statistics, Array& sums) const override {
    const Array own = placed(context, x, x), slope = placed(context, x, dy),
                factors = placed(context, x, gamma);
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const Slopes<T> slopes = slopes_of<T>(slope, statistics);
      const Rows<T> all = rows_of<T>(own, factors, {});
      start_rows(
          context, all, [](auto once, auto) { return sum_rows<T, once.value>; }, slopes,
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
