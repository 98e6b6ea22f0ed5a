#include "kernels/optimizer.h"

#include "base/error.h"
#include "base/text.h"
#include "kernels/front/optimizer_kernels.h"

namespace jigsaw::inline kernels {

namespace {

/// Operations an element of an update is counted as.
constexpr double kAdamwFlops = 16;

void require_alike(std::string_view kernel, const Array& a, const Array& b) {
  require_count(kernel, "an array", b, a.count());
  require_same_type(kernel, a, b);
}

/// Elements of the runs, which must follow one another in an array of `count`.
std::int64_t trained_count(std::string_view kernel, std::span<const TrainedRun> runs, std::int64_t count) {
  std::int64_t trained = 0, end = 0;
  for (const TrainedRun& run : runs) {
    if (run.count < 0 || run.at < end || run.at + run.count > count) {
      throw ShapeError(concat(kernel, ": a run of ", run.count, " elements from ", run.at,
                              " on is not between ", end, ", where the run before it ends, and ", count));
    }
    end = run.at + run.count;
    trained += run.count;
  }
  return trained;
}

}  // namespace

void adamw(Context& context, const AdamwStep& step, std::span<const TrainedRun> runs, Array& parameter,
           const Array& gradient, Array& moment1, Array& moment2) {
  for (const Array* other :
       {&gradient, static_cast<const Array*>(&moment1), static_cast<const Array*>(&moment2)}) {
    require_alike("adamw", parameter, *other);
  }
  require(parameter.dtype() != DType::kBfloat16, "adamw: master parameters are f32 or f64");
  require(step.step >= 1, "adamw: steps are counted from 1");
  const auto trained = static_cast<double>(trained_count("adamw", runs, parameter.count()));
  if (trained == 0) return;
  // Three arrays are read and written, one is read.
  count_work(context, kAdamwFlops * trained, {});
  context.tally().bytes += 7 * trained * static_cast<double>(size_of(parameter.dtype()));
  launch(context, parameter.dtype(), &OptimizerKernels::adamw, step, runs, parameter, gradient, moment1,
         moment2);
}

void exponential_average(Context& context, double decay, Array& average, const Array& parameter) {
  require_alike("exponential_average", average, parameter);
  require(average.dtype() != DType::kBfloat16, "exponential_average: averages are f32 or f64");
  count_work(context, 3.0 * static_cast<double>(average.count()), {&average, &average, &parameter});
  launch(context, average.dtype(), &OptimizerKernels::exponential_average, decay, average, parameter);
}

void add_squares_of_runs(Context& context, std::span<const TrainedRun> runs, const Array& x, Array& sum) {
  require_count("add_squares_of_runs", "the sum", sum, 1);
  require(sum.dtype() == DType::kFloat64, "add_squares_of_runs: the sum is f64");
  const auto trained = static_cast<double>(trained_count("add_squares_of_runs", runs, x.count()));
  if (trained == 0) return;
  count_work(context, 2 * trained, {});
  context.tally().bytes += trained * static_cast<double>(size_of(x.dtype()));
  launch(context, x.dtype(), &OptimizerKernels::squares_of_runs, runs, x, sum);
}

// What a backend lacks.
void OptimizerKernels::adamw(Context&, const AdamwStep&, std::span<const TrainedRun>, Array&, const Array&,
                             Array&, Array&) const {
  missing_kernel("adamw");
}
void OptimizerKernels::exponential_average(Context&, double, Array&, const Array&) const {
  missing_kernel("exponential_average");
}
void OptimizerKernels::squares_of_runs(Context&, std::span<const TrainedRun>, const Array&, Array&) const {
  missing_kernel("squares_of_runs");
}

}  // namespace jigsaw::inline kernels
