#include "kernels/loss.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "kernels/front/loss_kernels.h"

namespace jigsaw::inline kernels {

namespace {

constexpr double kSumFlops = 4, kGradientFlops = 4;
constexpr double kPairFlops = 2;                                 // per prediction and other member
constexpr double kLogCoshFlops = 12;                             // per prediction, besides
constexpr double kClassSumFlops = 10, kClassGradientFlops = 12;  // per logit, an exponential counting as 4
constexpr double kMeanFlops = 4, kFactorFlops = 2;               // per sample and channel, or class and term

/// Sums over points are few: the reference's loops are right for every host backend.
constexpr DType kAnywhere = DType::kFloat64;

/// [b, c] of the target [b, points…, c].
Shape sample_channels(std::string_view kernel, const Array& target) {
  if (target.rank() < 2) {
    throw ShapeError(concat(kernel, ": the target ", target.shape(), " should be [b, points…, c]"));
  }
  return {target.shape()[0], target.shape().back()};
}

/// How many predictions there are of each sample.
std::int64_t members_of(const Array& prediction, const Array& target) {
  return target.shape()[0] == 0 ? 1 : std::max<std::int64_t>(1, prediction.shape()[0] / target.shape()[0]);
}

/// What each prediction costs.
double flops_of(double flops, const ErrorMeasure& measure, const Array& prediction, const Array& target) {
  const std::int64_t members = members_of(prediction, target);
  const double pairs = measure.norm == ErrorNorm::kCrps ? kPairFlops * static_cast<double>(members - 1) : 0;
  const double bent = measure.norm == ErrorNorm::kLogCosh ? kLogCoshFlops : 0;
  return (flops + pairs + bent) * static_cast<double>(prediction.count());
}

void require_loss(std::string_view kernel, const Array& prediction, const Array& target,
                  const Array& weight) {
  Shape wanted = target.shape();
  wanted[0] *= members_of(prediction, target);
  require_same_shape(kernel, prediction.shape(), wanted);
  require_count(kernel, "the weight", weight, prediction.shape().count(1, prediction.rank() - 1));
  require(target.dtype() != DType::kBfloat16, "loss: the target is f32 or f64");
  require(weight.dtype() == DType::kFloat64, "loss: weights are f64");
}

void require_classes(std::string_view kernel, const Array& logits, const Array& labels, const Array& weight) {
  Shape wanted = logits.shape();
  if (wanted.rank() < 2 || wanted.back() < 1) {
    throw ShapeError(concat(kernel, ": the logits ", wanted, " should be [b, points…, k]"));
  }
  wanted[wanted.rank() - 1] = 1;
  require_same_shape(kernel, labels.shape(), wanted);
  require_count(kernel, "the weight", weight, wanted.count(1, wanted.rank() - 1));
  require(labels.dtype() != DType::kBfloat16, "class losses: labels are f32 or f64");
  require(weight.dtype() == DType::kFloat64, "class losses: weights are f64");
}

/// Weights of so many channels or classes.
void require_weights(std::string_view kernel, const Array& weight, std::int64_t width) {
  require_count(kernel, "the weight", weight, width);
  require(weight.dtype() == DType::kFloat64, "loss: weights are f64");
}

/// Sums [b, c], and a weight of each channel.
void require_sums(std::string_view kernel, const Array& sums, const Array& weight) {
  if (sums.rank() != 2) throw ShapeError(concat(kernel, ": the sums ", sums.shape(), " should be [b, c]"));
  require(sums.dtype() == DType::kFloat64, "loss: sums are f64");
  require_weights(kernel, weight, sums.shape()[1]);
}

/// [b, k] of sums [6, b, k].
Shape sample_classes(std::string_view kernel, const ClassSums& sums, const Array& weight) {
  const Shape& shape = sums.all.shape();
  if (shape.rank() != 3 || shape[0] != ClassSums::kKinds) {
    throw ShapeError(concat(kernel, ": the sums ", shape, " should be [", ClassSums::kKinds, ", b, k]"));
  }
  require(sums.all.dtype() == DType::kFloat64, "loss: sums are f64");
  require_weights(kernel, weight, shape[2]);
  return {shape[1], shape[2]};
}

Array mean_parts(Context& context) {
  return {context, {MeanParts::kKinds}, DType::kFloat64, Purpose::kWorkspace};
}

}  // namespace

LossSums loss_sums(Context& context, const ErrorMeasure& measure, const Array& prediction,
                   const Array& target, const Array& weight) {
  const Shape shape = sample_channels("loss_sums", target);
  require_loss("loss_sums", prediction, target, weight);
  LossSums sums{Array(context, shape, DType::kFloat64), Array(context, shape, DType::kFloat64)};
  count_work(context, flops_of(kSumFlops, measure, prediction, target), {&prediction, &target});
  launch(context, prediction.dtype(), &LossKernels::sums, measure, prediction, target, weight, sums);
  return sums;
}

Array loss_gradient(Context& context, const ErrorMeasure& measure, const Array& prediction,
                    const Array& target, const Array& weight, const Array& factor) {
  const Shape shape = sample_channels("loss_gradient", target);
  require_loss("loss_gradient", prediction, target, weight);
  require_same_shape("loss_gradient", factor.shape(), shape);
  require(factor.dtype() == DType::kFloat64, "loss: factors are f64");
  Array gradient(context, prediction.shape(), prediction.dtype());
  count_work(context, flops_of(kGradientFlops, measure, prediction, target),
             {&prediction, &target, &gradient});
  launch(context, prediction.dtype(), &LossKernels::gradient, measure, prediction, target, weight, factor,
         gradient);
  return gradient;
}

Array loss_mean(Context& context, const LossSums& sums, const Array& weight) {
  require_same_shape("loss_mean", sums.denominator.shape(), sums.numerator.shape());
  require_sums("loss_mean", sums.numerator, weight);
  Array mean = mean_parts(context);
  count_work(context, kMeanFlops * static_cast<double>(sums.numerator.count()),
             {&sums.numerator, &sums.denominator});
  launch(context, kAnywhere, &LossKernels::mean, sums, weight, mean);
  return mean;
}

Array loss_factors(Context& context, const Array& denominator, const Array& weight, double scale) {
  require_sums("loss_factors", denominator, weight);
  Array factors(context, denominator.shape(), DType::kFloat64, Purpose::kWorkspace);
  count_work(context, kFactorFlops * static_cast<double>(factors.count()), {&denominator, &factors});
  launch(context, kAnywhere, &LossKernels::factors, denominator, weight, scale, factors);
  return factors;
}

ClassSums class_sums(Context& context, const Array& logits, const Array& labels, const Array& weight) {
  require_classes("class_sums", logits, labels, weight);
  ClassSums sums{
      Array(context, {ClassSums::kKinds, logits.shape()[0], logits.shape().back()}, DType::kFloat64)};
  count_work(context, kClassSumFlops * static_cast<double>(logits.count()), {&logits, &labels});
  launch(context, logits.dtype(), &LossKernels::class_sums, logits, labels, weight, sums);
  return sums;
}

Array class_gradient(Context& context, const Array& logits, const Array& labels, const Array& weight,
                     const Array& factors) {
  require_classes("class_gradient", logits, labels, weight);
  require_same_shape("class_gradient", factors.shape(), {3, logits.shape()[0], logits.shape().back()});
  require(factors.dtype() == DType::kFloat64, "class losses: factors are f64");
  Array gradient(context, logits.shape(), logits.dtype());
  count_work(context, kClassGradientFlops * static_cast<double>(logits.count()),
             {&logits, &labels, &gradient});
  launch(context, logits.dtype(), &LossKernels::class_gradient, logits, labels, weight, factors, gradient);
  return gradient;
}

Array class_mean(Context& context, const ClassSums& sums, std::span<const ClassTerm> terms,
                 const Array& weight) {
  const Shape shape = sample_classes("class_mean", sums, weight);
  Array mean = mean_parts(context);
  count_work(context, kMeanFlops * static_cast<double>(shape.count() * std::ssize(terms)), {&sums.all});
  launch(context, kAnywhere, &LossKernels::class_mean, sums, terms, weight, mean);
  return mean;
}

Array class_factors(Context& context, const ClassSums& sums, std::span<const ClassTerm> terms,
                    const Array& weight, double scale) {
  const Shape shape = sample_classes("class_factors", sums, weight);
  Array factors(context, {3, shape[0], shape[1]}, DType::kFloat64, Purpose::kWorkspace);
  count_work(context, kFactorFlops * static_cast<double>(shape.count() * std::ssize(terms)),
             {&sums.all, &factors});
  launch(context, kAnywhere, &LossKernels::class_factors, sums, terms, weight, scale, factors);
  return factors;
}

// What a backend lacks.
void LossKernels::sums(Context&, const ErrorMeasure&, const Array&, const Array&, const Array&,
                       LossSums&) const {
  missing_kernel("loss_sums");
}
void LossKernels::gradient(Context&, const ErrorMeasure&, const Array&, const Array&, const Array&,
                           const Array&, Array&) const {
  missing_kernel("loss_gradient");
}
void LossKernels::mean(Context&, const LossSums&, const Array&, Array&) const {
  missing_kernel("loss_mean");
}
void LossKernels::factors(Context&, const Array&, const Array&, double, Array&) const {
  missing_kernel("loss_factors");
}
void LossKernels::class_sums(Context&, const Array&, const Array&, const Array&, ClassSums&) const {
  missing_kernel("class_sums");
}
void LossKernels::class_gradient(Context&, const Array&, const Array&, const Array&, const Array&,
                                 Array&) const {
  missing_kernel("class_gradient");
}
void LossKernels::class_mean(Context&, const ClassSums&, std::span<const ClassTerm>, const Array&,
                             Array&) const {
  missing_kernel("class_mean");
}
void LossKernels::class_factors(Context&, const ClassSums&, std::span<const ClassTerm>, const Array&, double,
                                Array&) const {
  missing_kernel("class_factors");
}

}  // namespace jigsaw::inline kernels
