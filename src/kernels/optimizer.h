#pragma once
#include "array/array.h"

namespace jigsaw::inline kernels {

struct AdamwStep {
  double learning_rate = 0, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  std::int64_t step = 1;      ///< 1 for the first update: bias correction
  double gradient_scale = 1;  ///< multiplies the gradient (clipping)
};

/// torch.optim.AdamW (decoupled decay, Loshchilov and Hutter 2019), in place on flat arrays of one type, f32
/// or f64: p ← p·(1 − lr·decay) − lr·m̂/(√v̂ + eps).
void adamw(Context& context, const AdamwStep& step, Array& parameter, const Array& gradient, Array& moment1,
           Array& moment2);

/// average ← decay·average + (1 − decay)·parameter.
void exponential_average(Context& context, double decay, Array& average, const Array& parameter);

/// sum += Σ x², formed in float64, in an order that depends on the count only.
/// @param sum  one number, f64.
void add_sum_of_squares(Context& context, const Array& x, Array& sum);

}  // namespace jigsaw::inline kernels
