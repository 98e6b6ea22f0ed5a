#include "kernels/row_statistics.h"

#include "kernels/copy.h"
#include "kernels/front/row_statistics_kernels.h"

namespace jigsaw::inline kernels {

Array pack_moments(Context& context, const Moments& moments) {
  const std::int64_t rows = moments.mean.count();
  Array packed(context, {2, rows}, moments.mean.dtype(), Purpose::kWorkspace);
  for (const auto& [row, part] : {std::pair(0, moments.mean), std::pair(1, moments.m2)}) {
    copy_box(context, part.reshaped({1, rows}), Box::whole({1, rows}), packed, Box{{row, 0}, {1, rows}});
  }
  return packed;
}

NormStatistics combine_moments(Context& context, const Array& parts, std::span<const std::int64_t> lengths,
                               double eps, Centre centre) {
  const std::int64_t rows = parts.count() / (2 * static_cast<std::int64_t>(lengths.size()));
  NormStatistics whole{Array(context, {rows}, parts.dtype()), Array(context, {rows}, parts.dtype())};
  count_work(context, 8.0 * static_cast<double>(parts.count()),
             {&parts, &whole.mean, &whole.reciprocal_deviation});
  launch(context, parts.dtype(), &RowStatisticsKernels::combine, parts, lengths, eps, centre, whole);
  return whole;
}

void drop_mean_part(Context& context, Array& row_sums) {
  count_work(context, 0, {&row_sums});
  launch(context, row_sums.dtype(), &RowStatisticsKernels::drop_mean_part, row_sums);
}

// What a backend lacks.
void RowStatisticsKernels::combine(Context&, const Array&, std::span<const std::int64_t>, double, Centre,
                                   NormStatistics&) const {
  missing_kernel("combine_moments");
}
void RowStatisticsKernels::drop_mean_part(Context&, Array&) const {
  missing_kernel("drop_mean_part");
}

}  // namespace jigsaw::inline kernels
