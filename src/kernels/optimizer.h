#pragma once
#include <span>

#include "array/array.h"

namespace jigsaw::inline kernels {

/// Elements [at, at + count) of flat arrays, those of one parameter, and what they are trained with. Several
/// follow one another and do not overlap.
struct TrainedRun {
  std::int64_t at = 0, count = 0;
  double learning_rate = 0, weight_decay = 0;
};

struct AdamwStep {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  std::int64_t step = 1;      ///< 1 for the first update: bias correction
  double rate_factor = 1;     ///< multiplies every learning rate
  double gradient_scale = 1;  ///< multiplies the gradient (clipping)
};

/// torch.optim.AdamW (decoupled decay, Loshchilov and Hutter 2019), in place on runs of flat arrays of one
/// type, f32 or f64: p ← p·(1 − lr·decay) − lr·m̂/(√v̂ + eps). What lies between the runs stays as it is.
void adamw(Context& context, const AdamwStep& step, std::span<const TrainedRun> runs, Array& parameter,
           const Array& gradient, Array& moment1, Array& moment2);

/// average ← decay·average + (1 − decay)·parameter.
void exponential_average(Context& context, double decay, Array& average, const Array& parameter);

/// sum += Σ x² over each run, formed in float64 in an order that depends on its count only; one run after the
/// other.
/// @param x    flat.
/// @param sum  one number, f64.
void add_squares_of_runs(Context& context, std::span<const TrainedRun> runs, const Array& x, Array& sum);

}  // namespace jigsaw::inline kernels
