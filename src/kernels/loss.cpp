#include "kernels/loss.h"

#include "base/error.h"
#include "base/text.h"
#include "kernels/loss_kernels.h"

namespace jigsaw {

namespace {

constexpr double kSumFlops = 4, kGradientFlops = 4;

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

}  // namespace

LossSums loss_sums(Context& context, ErrorNorm norm, const Array& prediction, const Array& target,
                   const Array& weight) {
  const Shape shape = sample_channels("loss_sums", prediction);
  require_loss("loss_sums", prediction, target, weight);
  LossSums sums{Array(context, shape, DType::kFloat64), Array(context, shape, DType::kFloat64)};
  count_work(context, kSumFlops * static_cast<double>(prediction.count()), {&prediction, &target});
  if (const auto* kernels = kernels_of<LossKernels>(context, prediction.dtype())) {
    kernels->sums(context, norm, prediction, target, weight, sums);
  }
  return sums;
}

Array loss_gradient(Context& context, ErrorNorm norm, const Array& prediction, const Array& target,
                    const Array& weight, const Array& factor) {
  const Shape shape = sample_channels("loss_gradient", prediction);
  require_loss("loss_gradient", prediction, target, weight);
  require_same_shape("loss_gradient", factor.shape(), shape);
  require(factor.dtype() == DType::kFloat64, "loss: factors are f64");
  Array gradient(context, prediction.shape(), prediction.dtype());
  count_work(context, kGradientFlops * static_cast<double>(prediction.count()),
             {&prediction, &target, &gradient});
  if (const auto* kernels = kernels_of<LossKernels>(context, prediction.dtype())) {
    kernels->gradient(context, norm, prediction, target, weight, factor, gradient);
  }
  return gradient;
}

// What a backend lacks.
void LossKernels::sums(Context&, ErrorNorm, const Array&, const Array&, const Array&, LossSums&) const {
  missing_kernel("loss_sums");
}
void LossKernels::gradient(Context&, ErrorNorm, const Array&, const Array&, const Array&, const Array&,
                           Array&) const {
  missing_kernel("loss_gradient");
}

}  // namespace jigsaw
