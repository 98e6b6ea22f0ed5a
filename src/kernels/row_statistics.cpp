#include "kernels/row_statistics.h"

#include <cmath>

#include "kernels/backend.h"
#include "kernels/copy.h"

namespace jigsaw {

Array pack_moments(Context& context, const Moments& moments) {
  const std::int64_t rows = moments.mean.count();
  Array packed(context, {2, rows}, moments.mean.dtype(), Purpose::kWorkspace);
  for (const auto& [row, part] : {std::pair(0, moments.mean), std::pair(1, moments.m2)}) {
    copy_box(context, part.reshaped({1, rows}), Box::whole({1, rows}), packed, Box{{row, 0}, {1, rows}});
  }
  return packed;
}

namespace {

template <typename T>
void combine(const T* parts, std::span<const std::int64_t> lengths, double eps, Centre centre,
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

}  // namespace

NormStatistics combine_moments(Context& context, const Array& parts, std::span<const std::int64_t> lengths,
                               double eps, Centre centre) {
  const std::int64_t rows = parts.count() / (2 * static_cast<std::int64_t>(lengths.size()));
  NormStatistics whole{Array(context, {rows}, parts.dtype()), Array(context, {rows}, parts.dtype())};
  count_work(context, 8.0 * static_cast<double>(parts.count()),
             {&parts, &whole.mean, &whole.reciprocal_deviation});
  if (context.backend() == Backend::kMeta) return whole;
  if (context.backend() == Backend::kCuda) missing_kernel("combine_moments");
  visit(parts.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (!std::is_same_v<T, BFloat16>) {
      combine(parts.data<T>(), lengths, eps, centre, rows, whole.mean.data<T>(),
              whole.reciprocal_deviation.data<T>());
    }
  });
  return whole;
}

void drop_mean_part(Context& context, Array& row_sums) {
  count_work(context, 0, {&row_sums});
  if (context.backend() == Backend::kMeta) return;
  if (context.backend() == Backend::kCuda) missing_kernel("drop_mean_part");
  visit(row_sums.dtype(), [&](auto zero) {
    for (std::int64_t i = 0; i < row_sums.count(); i += 2) row_sums.data<decltype(zero)>()[i] = zero;
  });
}

}  // namespace jigsaw
