#include "kernels/optimizer.h"

#include "base/error.h"
#include "base/text.h"
#include "kernels/front/optimizer_kernels.h"
#include "kernels/loss.h"

namespace jigsaw::inline kernels {

namespace {

/// Operations an element of an update is counted as.
constexpr double kAdamwFlops = 16, kSgdFlops = 8, kFollowFlops = 2;
/// Kernels of float64 numbers alone: every backend has them.
constexpr DType kAnywhere = DType::kFloat32;

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

void require_numbers(std::string_view kernel, const Array& numbers) {
  require_count(kernel, "the numbers of an update", numbers, UpdateNumbers::kKinds);
  require(numbers.dtype() == DType::kFloat64, "the numbers of an update are f64");
}

/// Elements of the runs of an update, whose arrays are as it wants them.
double checked_update(std::string_view kernel, std::span<const TrainedRun> runs, const Array& numbers,
                      const Array& parameter, std::initializer_list<const Array*> others, const Array& copy) {
  for (const Array* other : others) require_alike(kernel, parameter, *other);
  require(parameter.dtype() != DType::kBfloat16, "an update: master parameters are f32 or f64");
  require_numbers(kernel, numbers);
  if (copy.defined()) {
    require_count(kernel, "a copy", copy, parameter.count());
    require(copy.dtype() == DType::kBfloat16, "an update: the copy is bf16");
  }
  return static_cast<double>(trained_count(kernel, runs, parameter.count()));
}

/// @param arrays  that are read or written.
void count_update(Context& context, double flops, double arrays, double elements, const Array& parameter,
                  const Array& copy) {
  count_work(context, flops * elements, {});
  const double copied = copy.defined() ? static_cast<double>(size_of(DType::kBfloat16)) : 0;
  context.tally().bytes += elements * (arrays * static_cast<double>(size_of(parameter.dtype())) + copied);
}

}  // namespace

void decide_update(Context& context, const GradientTerms& terms, const Array& loss, const Array& squares,
                   Array& numbers) {
  require_count("decide_update", "a loss", loss, MeanParts::kKinds);
  require_count("decide_update", "the squares", squares, 1);
  require_numbers("decide_update", numbers);
  for (const Array* array : {&loss, &squares})
    require(array->dtype() == DType::kFloat64, "decide_update: what a step found is f64");
  count_work(context, UpdateNumbers::kKinds, {&loss, &squares, &numbers});
  launch(context, kAnywhere, &OptimizerKernels::decide, terms, loss, squares, numbers);
}

void adamw(Context& context, const AdamwOptions& options, std::span<const TrainedRun> runs,
           const Array& numbers, Array& parameter, const Array& gradient, Array& moment1, Array& moment2,
           Array copy) {
  const double trained =
      checked_update("adamw", runs, numbers, parameter, {&gradient, &moment1, &moment2}, copy);
  if (trained == 0) return;
  // Three arrays are read and written, one is read.
  count_update(context, kAdamwFlops, 7, trained, parameter, copy);
  launch(context, parameter.dtype(), &OptimizerKernels::adamw, options, runs, numbers, parameter, gradient,
         moment1, moment2, copy);
}

void sgd(Context& context, const Momentum& momentum, std::span<const TrainedRun> runs, const Array& numbers,
         Array& parameter, const Array& gradient, Array& velocity, Array copy) {
  const double trained = checked_update("sgd", runs, numbers, parameter, {&gradient, &velocity}, copy);
  if (trained == 0) return;
  count_update(context, kSgdFlops, 5, trained, parameter, copy);
  launch(context, parameter.dtype(), &OptimizerKernels::sgd, momentum, runs, numbers, parameter, gradient,
         velocity, copy);
}

void follow(Context& context, std::span<const TrainedRun> runs, const Array& numbers, Array& statistic,
            const Array& gradient, Array copy) {
  const double followed = checked_update("follow", runs, numbers, statistic, {&gradient}, copy);
  if (followed == 0) return;
  count_update(context, kFollowFlops, 3, followed, statistic, copy);
  launch(context, statistic.dtype(), &OptimizerKernels::follow, runs, numbers, statistic, gradient, copy);
}

void exponential_average(Context& context, double decay, const Array& numbers, Array& average,
                         const Array& parameter) {
  require_alike("exponential_average", average, parameter);
  require_numbers("exponential_average", numbers);
  require(average.dtype() != DType::kBfloat16, "exponential_average: averages are f32 or f64");
  count_work(context, 3.0 * static_cast<double>(average.count()), {&average, &average, &parameter});
  launch(context, average.dtype(), &OptimizerKernels::exponential_average, decay, numbers, average,
         parameter);
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
void OptimizerKernels::decide(Context&, const GradientTerms&, const Array&, const Array&, Array&) const {
  missing_kernel("decide");
}
void OptimizerKernels::adamw(Context&, const AdamwOptions&, std::span<const TrainedRun>, const Array&, Array&,
                             const Array&, Array&, Array&, Array&) const {
  missing_kernel("adamw");
}
void OptimizerKernels::sgd(Context&, const Momentum&, std::span<const TrainedRun>, const Array&, Array&,
                           const Array&, Array&, Array&) const {
  missing_kernel("sgd");
}
void OptimizerKernels::follow(Context&, std::span<const TrainedRun>, const Array&, Array&, const Array&,
                              Array&) const {
  missing_kernel("follow");
}
void OptimizerKernels::exponential_average(Context&, double, const Array&, Array&, const Array&) const {
  missing_kernel("exponential_average");
}
void OptimizerKernels::squares_of_runs(Context&, std::span<const TrainedRun>, const Array&, Array&) const {
  missing_kernel("squares_of_runs");
}

}  // namespace jigsaw::inline kernels
