#pragma once
#include "array/array.h"

namespace jigsaw::inline kernels {

/// Mean and sum of squared deviations of each row, f32 (f64 for f64); what ranks that hold parts of a row
/// combine (Chan, Golub and LeVeque 1979).
struct Moments {
  Array mean;  ///< [rows]
  Array m2;    ///< [rows]
};
template <typename F>
void for_each_array(Moments& all, const F& f) {
  f(all.mean);
  f(all.m2);
}

/// x is [rows, c] row-major (any leading dims; c is the last extent and may be zero).
Moments row_moments(Context& context, const Array& x);

/// From where rows' squared deviations are counted: from their mean (LayerNorm), or from zero (RMSNorm, whose
/// statistics are a mean of 0 and 1/√(mean square + eps)).
enum class Centre : std::uint8_t { kMean, kZero };

/// Statistics that layer_norm saves for its backward, f32 (f64 for f64), [rows].
struct NormStatistics {
  Array mean;
  Array reciprocal_deviation;  ///< 1/√(variance + eps), biased variance
};
template <typename F>
void for_each_array(NormStatistics& all, const F& f) {
  f(all.mean);
  f(all.reciprocal_deviation);
}

/// torch.nn.LayerNorm over the last dim in one pass: y = (x − mean)·rstd·gamma + beta.
/// @param gamma, beta  [c], or undefined: beta alone, or both. Computed in f32 (f64), y of x's type.
Array layer_norm_forward(Context& context, const Array& x, const Array& gamma, const Array& beta, double eps,
                         NormStatistics& statistics);
/// The same with given statistics (of the whole row, of which x may hold a part).
Array layer_norm_apply(Context& context, const Array& x, const Array& gamma, const Array& beta,
                       const NormStatistics& statistics);

struct NormGradients {
  Array dx;             ///< type and shape of dy
  Array dgamma, dbeta;  ///< [c], f32 (f64): sums over the rows; undefined without gamma
};
template <typename F>
void for_each_array(NormGradients& all, const F& f) {
  f(all.dx);
  f(all.dgamma);
  f(all.dbeta);
}
/// Backward for whole rows.
NormGradients layer_norm_backward(Context& context, const Array& dy, const Array& x, const Array& gamma,
                                  const NormStatistics& statistics);

/// torch.nn.RMSNorm over the last dim in one pass, y = x/√(mean square + eps)·gamma, and its backward for
/// whole rows; layer_norm_apply() is right for its statistics, too.
Array rms_norm_forward(Context& context, const Array& x, const Array& gamma, double eps,
                       NormStatistics& statistics);
NormGradients rms_norm_backward(Context& context, const Array& dy, const Array& x, const Array& gamma,
                                const NormStatistics& statistics);

/// Row sums of dy·gamma and of dy·gamma·x̂ over the part of the row held here, [rows, 2], f32 (f64).
Array layer_norm_row_sums(Context& context, const Array& dy, const Array& x, const Array& gamma,
                          const NormStatistics& statistics);
/// Backward for a part of each row, given the sums over the whole row of `c_total` elements.
NormGradients layer_norm_backward_apply(Context& context, const Array& dy, const Array& x, const Array& gamma,
                                        const NormStatistics& statistics, const Array& row_sums,
                                        std::int64_t c_total);

}  // namespace jigsaw::inline kernels
