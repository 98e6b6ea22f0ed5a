#include "kernels/loss.h"

#include "base/error.h"
#include "base/text.h"
#include "kernels/front/loss_kernels.h"

namespace jigsaw::inline kernels {

namespace {

constexpr double kSumFlops = 4, kGradientFlops = 4;
constexpr double kClassSumFlops = 10, kClassGradientFlops = 12;  // per logit, an exponential counting as 4

/// [b, c] of prediction [b, points…, c].
Shape sample_channels(std::string_view kernel, const Array& prediction) {
  if (prediction.rank() < 2) {
    throw ShapeError(concat(kernel, ": the prediction ", prediction.shape(), " should be [b, points…, c]"));
  }
  return {prediction.shape()[0], prediction.shape().back()};
}

void require_loss(std::string_view kernel, const Array& prediction, const Array& target,
                  const Array& weight) {
  require_same_shape(kernel, prediction.shape(), target.shape());
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

}  // namespace

LossSums loss_sums(Context& context, const ErrorMeasure& measure, const Array& prediction,
                   const Array& target, const Array& weight) {
  const Shape shape = sample_channels("loss_sums", prediction);
  require_loss("loss_sums", prediction, target, weight);
  LossSums sums{Array(context, shape, DType::kFloat64), Array(context, shape, DType::kFloat64)};
  count_work(context, kSumFlops * static_cast<double>(prediction.count()), {&prediction, &target});
  launch(context, prediction.dtype(), &LossKernels::sums, measure, prediction, target, weight, sums);
  return sums;
}

Array loss_gradient(Context& context, const ErrorMeasure& measure, const Array& prediction,
                    const Array& target, const Array& weight, const Array& factor) {
  const Shape shape = sample_channels("loss_gradient", prediction);
  require_loss("loss_gradient", prediction, target, weight);
  require_same_shape("loss_gradient", factor.shape(), shape);
  require(factor.dtype() == DType::kFloat64, "loss: factors are f64");
  Array gradient(context, prediction.shape(), prediction.dtype());
  count_work(context, kGradientFlops * static_cast<double>(prediction.count()),
             {&prediction, &target, &gradient});
  launch(context, prediction.dtype(), &LossKernels::gradient, measure, prediction, target, weight, factor,
         gradient);
  return gradient;
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

// What a backend lacks.
void LossKernels::sums(Context&, const ErrorMeasure&, const Array&, const Array&, const Array&,
                       LossSums&) const {
  missing_kernel("loss_sums");
}
void LossKernels::gradient(Context&, const ErrorMeasure&, const Array&, const Array&, const Array&,
                           const Array&, Array&) const {
  missing_kernel("loss_gradient");
}
void LossKernels::class_sums(Context&, const Array&, const Array&, const Array&, ClassSums&) const {
  missing_kernel("class_sums");
}
void LossKernels::class_gradient(Context&, const Array&, const Array&, const Array&, const Array&,
                                 Array&) const {
  missing_kernel("class_gradient");
}

}  // namespace jigsaw::inline kernels
