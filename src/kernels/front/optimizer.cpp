#include "kernels/optimizer.h"

#include "base/error.h"
#include "kernels/front/optimizer_kernels.h"

namespace jigsaw::inline kernels {

namespace {

/// Operations an element of an update is counted as.
constexpr double kAdamwFlops = 16;

void require_alike(std::string_view kernel, const Array& a, const Array& b) {
  require_count(kernel, "an array", b, a.count());
  require_same_type(kernel, a, b);
}

}  // namespace

void adamw(Context& context, const AdamwStep& step, Array& parameter, const Array& gradient, Array& moment1,
           Array& moment2) {
  for (const Array* other :
       {&gradient, static_cast<const Array*>(&moment1), static_cast<const Array*>(&moment2)}) {
    require_alike("adamw", parameter, *other);
  }
  require(parameter.dtype() != DType::kBfloat16, "adamw: master parameters are f32 or f64");
  require(step.step >= 1, "adamw: steps are counted from 1");
  count_work(context, kAdamwFlops * static_cast<double>(parameter.count()),
             {&parameter, &parameter, &gradient, &moment1, &moment1, &moment2, &moment2});
  launch(context, parameter.dtype(), &OptimizerKernels::adamw, step, parameter, gradient, moment1, moment2);
}

void exponential_average(Context& context, double decay, Array& average, const Array& parameter) {
  require_alike("exponential_average", average, parameter);
  require(average.dtype() != DType::kBfloat16, "exponential_average: averages are f32 or f64");
  count_work(context, 3.0 * static_cast<double>(average.count()), {&average, &average, &parameter});
  launch(context, average.dtype(), &OptimizerKernels::exponential_average, decay, average, parameter);
}

void add_sum_of_squares(Context& context, const Array& x, Array& sum) {
  require_count("add_sum_of_squares", "the sum", sum, 1);
  require(sum.dtype() == DType::kFloat64, "add_sum_of_squares: the sum is f64");
  count_work(context, 2.0 * static_cast<double>(x.count()), {&x});
  launch(context, x.dtype(), &OptimizerKernels::sum_of_squares, x, sum);
}

// What a backend lacks.
void OptimizerKernels::adamw(Context&, const AdamwStep&, Array&, const Array&, Array&, Array&) const {
  missing_kernel("adamw");
}
void OptimizerKernels::exponential_average(Context&, double, Array&, const Array&) const {
  missing_kernel("exponential_average");
}
void OptimizerKernels::sum_of_squares(Context&, const Array&, Array&) const {
  missing_kernel("sum_of_squares");
}

}  // namespace jigsaw::inline kernels
