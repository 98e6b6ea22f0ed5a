#include "kernels/normalization.h"

#include "base/error.h"
#include "base/text.h"
#include "kernels/front/normalization_kernels.h"
#include "kernels/pointwise.h"

namespace jigsaw::inline kernels {

namespace {

/// Operations an element is counted as.
constexpr double kMomentFlops = 4, kApplyFlops = 4, kBackwardFlops = 11, kRowSumFlops = 6;

/// Product of all extents but the last.
std::int64_t rows_of(std::string_view kernel, const Array& x) {
  if (x.rank() == 0) throw ShapeError(concat(kernel, ": x needs a last dim to normalise over"));
  return x.shape().count(0, x.rank() - 1);
}

double elements(const Array& x) {
  return static_cast<double>(x.count());
}

/// A row vector in the type the kernel computes in.
Array widened(Context& context, std::string_view kernel, std::string_view what, const Array& vector,
              const Array& x) {
  if (!vector.defined()) return vector;
  require_count(kernel, what, vector, x.shape().back());
  return cast(context, vector, accumulator_of(x.dtype()), Purpose::kWorkspace);
}

void require_statistics(std::string_view kernel, const Array& x, const NormStatistics& statistics) {
  for (const Array* part : {&statistics.mean, &statistics.reciprocal_deviation}) {
    require_count(kernel, "a statistic", *part, rows_of(kernel, x));
    require(part->dtype() == accumulator_of(x.dtype()),
            "layer_norm: statistics are f32, or f64 of f64 arrays");
  }
}

void require_affine(const Array& gamma, const Array& beta) {
  require(gamma.defined() || !beta.defined(), "layer_norm: beta comes with gamma");
}

NormGradients backward(Context& context, const Array& dy, const Array& x, const Array& gamma,
                       const NormStatistics& statistics, Centre centre, const Array& row_sums,
                       std::int64_t c_total) {
  require_same_shape("layer_norm_backward", dy.shape(), x.shape());
  require_same_type("layer_norm_backward", dy, x);
  require_statistics("layer_norm_backward", x, statistics);
  const Array wide_gamma = widened(context, "layer_norm_backward", "gamma", gamma, x);
  NormGradients gradients{Array(context, dy.shape(), dy.dtype()), {}, {}};
  if (gamma.defined()) {
    gradients.dgamma = Array(context, {x.shape().back()}, accumulator_of(x.dtype()));
    gradients.dbeta = Array(context, {x.shape().back()}, accumulator_of(x.dtype()));
  }
  count_work(context, kBackwardFlops * elements(x), {&dy, &x, &gradients.dx, &row_sums});
  launch(context, x.dtype(), &NormalizationKernels::backward, dy, x, wide_gamma, statistics, centre, row_sums,
         c_total, gradients);
  return gradients;
}

Array forward(Context& context, const Array& x, const Array& gamma, const Array& beta, double eps,
              Centre centre, NormStatistics& statistics) {
  require_affine(gamma, beta);
  const std::int64_t rows = rows_of("layer_norm_forward", x);
  const Array wide_gamma = widened(context, "layer_norm_forward", "gamma", gamma, x);
  const Array wide_beta = widened(context, "layer_norm_forward", "beta", beta, x);
  const DType type = accumulator_of(x.dtype());
  statistics = {Array(context, {rows}, type), Array(context, {rows}, type)};
  Array y(context, x.shape(), x.dtype());
  count_work(context, (kMomentFlops + kApplyFlops) * elements(x),
             {&x, &y, &statistics.mean, &statistics.reciprocal_deviation});
  launch(context, x.dtype(), &NormalizationKernels::forward, x, wide_gamma, wide_beta, eps, centre,
         statistics, y);
  return y;
}

}  // namespace

Moments row_moments(Context& context, const Array& x) {
  const std::int64_t rows = rows_of("row_moments", x);
  const DType type = accumulator_of(x.dtype());
  Moments moments{Array(context, {rows}, type), Array(context, {rows}, type)};
  count_work(context, kMomentFlops * elements(x), {&x, &moments.mean, &moments.m2});
  launch(context, x.dtype(), &NormalizationKernels::row_moments, x, moments);
  return moments;
}

Array layer_norm_forward(Context& context, const Array& x, const Array& gamma, const Array& beta, double eps,
                         NormStatistics& statistics) {
  return forward(context, x, gamma, beta, eps, Centre::kMean, statistics);
}

Array rms_norm_forward(Context& context, const Array& x, const Array& gamma, double eps,
                       NormStatistics& statistics) {
  return forward(context, x, gamma, Array(), eps, Centre::kZero, statistics);
}

NormGradients rms_norm_backward(Context& context, const Array& dy, const Array& x, const Array& gamma,
                                const NormStatistics& statistics) {
  rows_of("rms_norm_backward", x);
  return backward(context, dy, x, gamma, statistics, Centre::kZero, Array(), x.shape().back());
}

Array layer_norm_apply(Context& context, const Array& x, const Array& gamma, const Array& beta,
                       const NormStatistics& statistics) {
  require_affine(gamma, beta);
  require_statistics("layer_norm_apply", x, statistics);
  const Array wide_gamma = widened(context, "layer_norm_apply", "gamma", gamma, x);
  const Array wide_beta = widened(context, "layer_norm_apply", "beta", beta, x);
  Array y(context, x.shape(), x.dtype());
  count_work(context, kApplyFlops * elements(x), {&x, &y});
  launch(context, x.dtype(), &NormalizationKernels::apply, x, wide_gamma, wide_beta, statistics, y);
  return y;
}

NormGradients layer_norm_backward(Context& context, const Array& dy, const Array& x, const Array& gamma,
                                  const NormStatistics& statistics) {
  rows_of("layer_norm_backward", x);
  return backward(context, dy, x, gamma, statistics, Centre::kMean, Array(), x.shape().back());
}

Array layer_norm_row_sums(Context& context, const Array& dy, const Array& x, const Array& gamma,
                          const NormStatistics& statistics) {
  require_same_shape("layer_norm_row_sums", dy.shape(), x.shape());
  require_same_type("layer_norm_row_sums", dy, x);
  require_statistics("layer_norm_row_sums", x, statistics);
  const Array wide_gamma = widened(context, "layer_norm_row_sums", "gamma", gamma, x);
  Array sums(context, {rows_of("layer_norm_row_sums", x), 2}, accumulator_of(x.dtype()));
  count_work(context, kRowSumFlops * elements(x), {&dy, &x, &sums});
  launch(context, x.dtype(), &NormalizationKernels::row_sums, dy, x, wide_gamma, statistics, sums);
  return sums;
}

NormGradients layer_norm_backward_apply(Context& context, const Array& dy, const Array& x, const Array& gamma,
                                        const NormStatistics& statistics, const Array& row_sums,
                                        std::int64_t c_total) {
  require_count("layer_norm_backward_apply", "row_sums", row_sums,
                2 * rows_of("layer_norm_backward_apply", x));
  require(row_sums.dtype() == accumulator_of(x.dtype()),
          "layer_norm: row sums are f32, or f64 of f64 arrays");
  return backward(context, dy, x, gamma, statistics, Centre::kMean, row_sums, c_total);
}

// What a backend lacks.
void NormalizationKernels::row_moments(Context&, const Array&, Moments&) const {
  missing_kernel("row_moments");
}
void NormalizationKernels::forward(Context&, const Array&, const Array&, const Array&, double, Centre,
                                   NormStatistics&, Array&) const {
  missing_kernel("layer_norm_forward");
}
void NormalizationKernels::apply(Context&, const Array&, const Array&, const Array&, const NormStatistics&,
                                 Array&) const {
  missing_kernel("layer_norm_apply");
}
void NormalizationKernels::backward(Context&, const Array&, const Array&, const Array&, const NormStatistics&,
                                    Centre, const Array&, std::int64_t, NormGradients&) const {
  missing_kernel("layer_norm_backward");
}
void NormalizationKernels::row_sums(Context&, const Array&, const Array&, const Array&, const NormStatistics&,
                                    Array&) const {
  missing_kernel("layer_norm_row_sums");
}

}  // namespace jigsaw::inline kernels
