#include <cmath>
#include <vector>

#include "array/raw_memory.h"
#include "kernels/cuda/device.cuh"
#include "kernels/front/optimizer_kernels.h"

namespace jigsaw::inline kernels::cuda {

namespace {

template <typename T>
struct Adamw {
  T *p, *m, *v;
  const T* g;
  T scale, beta1, beta2, rest1, rest2, keep, rate, root2, eps;

  __device__ void operator()(std::int64_t i) const {
    const T slope = g[i] * scale;
    m[i] = beta1 * m[i] + rest1 * slope;
    v[i] = beta2 * v[i] + rest2 * slope * slope;
    p[i] = p[i] * keep - rate * m[i] / (sqrt(v[i]) * root2 + eps);
  }
};

template <typename T>
struct Average {
  T* average;
  const T* x;
  T keep, rest;
  __device__ void operator()(std::int64_t i) const { average[i] = keep * average[i] + rest * x[i]; }
};

/// Σ x² of each run of kRun elements: the order depends on the count only.
constexpr std::int64_t kRun = 8192;

template <typename E>
__global__ void square_sums(std::int64_t count, const E* x, double* sums) {
  const std::int64_t runs = (count + kRun - 1) / kRun;
  for (std::int64_t run = blockIdx.x; run < runs; run += gridDim.x) {
    const std::int64_t whole = (run + 1) * kRun, end = whole < count ? whole : count;
    double sum = 0;
    for (std::int64_t i = run * kRun + threadIdx.x; i < end; i += kThreads) {
      const auto value = load<double>(x[i]);
      sum += value * value;
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) sums[run] = sum;
  }
}

/// sum += Σ of the runs, by one block.
__global__ void add_runs(std::int64_t runs, const double* sums, double* sum) {
  double own = 0;
  for (std::int64_t run = threadIdx.x; run < runs; run += kThreads) own += sums[run];
  own = block_sum(own);
  if (threadIdx.x == 0) *sum += own;
}

class Optimizer : public OptimizerKernels {
 public:
  void adamw(Context& context, const AdamwStep& step, Array& parameter, const Array& gradient, Array& moment1,
             Array& moment2) const override {
    const double correction1 = 1.0 - std::pow(step.beta1, static_cast<double>(step.step));
    const double correction2 = 1.0 - std::pow(step.beta2, static_cast<double>(step.step));
    visit_master(parameter.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const auto as = [](double value) { return static_cast<T>(value); };
      for_elements(
          context, parameter.count(),
          Adamw<T>{parameter.data<T>(), moment1.data<T>(), moment2.data<T>(), gradient.data<T>(),
                   as(step.gradient_scale), as(step.beta1), as(step.beta2), as(1.0 - step.beta1),
                   as(1.0 - step.beta2), as(1.0 - step.learning_rate * step.weight_decay),
                   as(step.learning_rate / correction1), as(1.0 / std::sqrt(correction2)), as(step.eps)});
    });
  }

  void exponential_average(Context& context, double decay, Array& average,
                           const Array& parameter) const override {
    visit_master(average.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_elements(context, average.count(),
                   Average<T>{average.data<T>(), parameter.data<T>(), static_cast<T>(decay),
                              static_cast<T>(1.0 - decay)});
    });
  }

  void sum_of_squares(Context& context, const Array& x, Array& sum) const override {
    const std::int64_t runs = (x.count() + kRun - 1) / kRun;
    if (runs == 0) return;
    Array sums(context, {runs}, DType::kFloat64, Purpose::kWorkspace);
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      start_kernel(context, blocks_for(runs), square_sums<Element<T>>, x.count(), elements<T>(x),
                   sums.data<double>());
    });
    start_kernel(context, 1, add_runs, runs, sums.data<double>(), sum.data<double>());
  }

 private:
  /// f32 or f64, the types of master parameters.
  template <typename F>
  static void visit_master(DType dtype, const F& f) {
    if (dtype == DType::kFloat64) return f(double{});
    f(float{});
  }
};

}  // namespace

template <>
const OptimizerKernels& kernels() {
  static const Optimizer instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::cuda
