#pragma once
#include <span>

#include "kernels/normalization.h"

namespace jigsaw::inline kernels {

/// Moments as one array [2, rows] (means, then squared deviations), to be sent.
Array pack_moments(Context& context, const Moments& moments);

/// Statistics of whole rows from the packed moments of their parts.
/// @param parts    [n, 2, rows], in rank order.
/// @param lengths  elements of each part's rows; parts of length zero are skipped.
/// @param eps      added to the biased variance, or to the mean square.
/// Source: Chan, Golub and LeVeque 1979, "Updating formulae and a pairwise algorithm for computing sample
/// variances".
NormStatistics combine_moments(Context& context, const Array& parts, std::span<const std::int64_t> lengths,
                               double eps, Centre centre = Centre::kMean);
/// The row sums of layer_norm_row_sums() as RMSNorm's backward has them: without the part of the mean.
void drop_mean_part(Context& context, Array& row_sums);

}  // namespace jigsaw::inline kernels
