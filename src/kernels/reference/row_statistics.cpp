#include <cmath>

#include "array/raw_memory.h"
#include "kernels/front/row_statistics_kernels.h"

namespace jigsaw::inline kernels::reference {

namespace {

template <typename T>
void combine_rows(const T* parts, std::span<const std::int64_t> lengths, double eps, Centre centre,
                  std::int64_t rows, T* mean, T* reciprocal_deviation) {
  for (std::int64_t row = 0; row < rows; ++row) {
    double count = 0, average = 0, m2 = 0;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      const auto n = static_cast<double>(lengths[i]);
      if (n == 0) continue;
      const T* part = parts + static_cast<std::int64_t>(i) * 2 * rows;
      const double delta = part[row] - average;
      m2 += part[rows + row] + delta * delta * count * n / (count + n);
      count += n;
      average += delta * n / count;
    }
    if (centre == Centre::kZero) {
      m2 += count * average * average;
      average = 0;
    }
    mean[row] = static_cast<T>(average);
    reciprocal_deviation[row] = static_cast<T>(1.0 / std::sqrt(m2 / count + eps));
  }
}

class RowStatistics : public RowStatisticsKernels {
 public:
  void combine(Context&, const Array& parts, std::span<const std::int64_t> lengths, double eps, Centre centre,
               NormStatistics& whole) const override {
    visit(parts.dtype(), [&](auto zero) {
      using T = Accumulator<decltype(zero)>;
      combine_rows(parts.data<T>(), lengths, eps, centre, whole.mean.count(), whole.mean.data<T>(),
                   whole.reciprocal_deviation.data<T>());
    });
  }

  void drop_mean_part(Context&, Array& row_sums) const override {
    visit(row_sums.dtype(), [&](auto zero) {
      for (std::int64_t i = 0; i < row_sums.count(); i += 2) row_sums.data<decltype(zero)>()[i] = zero;
    });
  }
};

}  // namespace

template <>
const RowStatisticsKernels& kernels() {
  static const RowStatistics instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::reference
