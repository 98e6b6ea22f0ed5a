#include "array/raw_memory.h"
#include "kernels/cuda/constants.h"
#include "kernels/cuda/device.cuh"
#include "kernels/front/row_statistics_kernels.h"

namespace jigsaw::inline kernels::cuda {

namespace {

/// One row's parts together, in float64 and in rank order.
template <typename R>
struct CombineRow {
  const R* parts;
  const std::int64_t* lengths;
  std::int64_t ranks, rows;
  double eps;
  Centre centre;
  R *mean, *reciprocal_deviation;

  __device__ void operator()(std::int64_t row) const {
    double count = 0, average = 0, m2 = 0;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const auto n = static_cast<double>(lengths[rank]);
      if (n == 0) continue;
      const R* part = parts + rank * 2 * rows;
      const double delta = static_cast<double>(part[row]) - average;
      m2 += static_cast<double>(part[rows + row]) + delta * delta * count * n / (count + n);
      count += n;
      average += delta * n / count;
    }
    if (centre == Centre::kZero) {
      m2 += count * average * average;
      average = 0;
    }
    mean[row] = static_cast<R>(average);
    reciprocal_deviation[row] = static_cast<R>(1.0 / sqrt(m2 / count + eps));
  }
};

struct DropMeanPart {
  AnyElements sums;
  __device__ void operator()(std::int64_t row) const { sums.put(2 * row, 0.0); }
};

class RowStatistics : public RowStatisticsKernels {
 public:
  void combine(Context& context, const Array& parts, std::span<const std::int64_t> lengths, double eps,
               Centre centre, NormStatistics& whole) const override {
    const auto ranks = static_cast<std::int64_t>(lengths.size());
    visit(parts.dtype(), [&](auto zero) {
      using R = Accumulator<decltype(zero)>;
      const std::int64_t rows = whole.mean.count();
      if (rows == 0) return;
      for_elements(context, rows,
                   CombineRow<R>{parts.data<R>(), constants(context, lengths), ranks, rows, eps, centre,
                                 whole.mean.data<R>(), whole.reciprocal_deviation.data<R>()});
    });
  }

  void drop_mean_part(Context& context, Array& row_sums) const override {
    for_elements(context, row_sums.count() / 2, DropMeanPart{any_elements(row_sums)});
  }
};

}  // namespace

template <>
const RowStatisticsKernels& kernels() {
  static const RowStatistics instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::cuda
