#include <cmath>
#include <vector>

#include "array/raw_memory.h"
#include "kernels/cpu/lane_sum.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/vectorize.h"
#include "kernels/front/optimizer_kernels.h"

namespace jigsaw::inline kernels::cpu {

namespace {

/// Ranges of elements start on whole cache lines.
constexpr std::int64_t kStep = 1024;

class Optimizer : public OptimizerKernels {
 public:
  void adamw(Context& context, const AdamwStep& step, Array& parameter, const Array& gradient, Array& moment1,
             Array& moment2) const override {
    const double correction1 = 1.0 - std::pow(step.beta1, static_cast<double>(step.step));
    const double correction2 = 1.0 - std::pow(step.beta2, static_cast<double>(step.step));
    const auto scale = static_cast<float>(step.gradient_scale), eps = static_cast<float>(step.eps);
    const auto beta1 = static_cast<float>(step.beta1), beta2 = static_cast<float>(step.beta2);
    const auto rest1 = static_cast<float>(1.0 - step.beta1), rest2 = static_cast<float>(1.0 - step.beta2);
    const auto keep = static_cast<float>(1.0 - step.learning_rate * step.weight_decay);
    const auto rate = static_cast<float>(step.learning_rate / correction1);
    const auto root2 = static_cast<float>(1.0 / std::sqrt(correction2));
    float *const p = parameter.data<float>(), *const m = moment1.data<float>(),
                 *const v = moment2.data<float>();
    const float* const g = gradient.data<float>();
    const std::int64_t count = parameter.count();
    for_ranges(threads_for(context, count, 1), count, kStep, [&](std::int64_t begin, std::int64_t end, int) {
      vectorized([=] {
        for (std::int64_t i = begin; i < end; ++i) {
          const float slope = g[i] * scale;
          m[i] = beta1 * m[i] + rest1 * slope;
          v[i] = beta2 * v[i] + rest2 * slope * slope;
          p[i] = p[i] * keep - rate * m[i] / (std::sqrt(v[i]) * root2 + eps);
        }
      });
    });
  }

  void exponential_average(Context& context, double decay, Array& average,
                           const Array& parameter) const override {
    float* const a = average.data<float>();
    const float* const p = parameter.data<float>();
    const auto keep = static_cast<float>(decay), rest = static_cast<float>(1.0 - decay);
    for_ranges(threads_for(context, average.count(), 1), average.count(), kStep,
               [&](std::int64_t begin, std::int64_t end, int) {
                 vectorized([=] {
                   for (std::int64_t i = begin; i < end; ++i) a[i] = keep * a[i] + rest * p[i];
                 });
               });
  }

  /// Blocks of fixed size, summed in order: any number of threads gives the same bits.
  void sum_of_squares(Context& context, const Array& x, Array& result) const override {
    constexpr std::int64_t kBlock = 8192;
    const std::int64_t blocks = (x.count() + kBlock - 1) / kBlock;
    std::vector<double> sums(static_cast<std::size_t>(blocks), 0.0);
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_ranges(threads_for(context, blocks, kBlock), blocks, 1,
                 [&](std::int64_t begin, std::int64_t end, int) {
                   for (std::int64_t block = begin; block < end; ++block) {
                     const T* const values = x.data<T>() + block * kBlock;
                     const std::int64_t n = std::min(kBlock, x.count() - block * kBlock);
                     double& sum = sums[static_cast<std::size_t>(block)];
                     vectorized([=, &sum] {
                       sum = lane_sum<double>(n, [values](std::int64_t i) {
                         const auto value = static_cast<double>(values[i]);
                         return value * value;
                       });
                     });
                   }
                 });
    });
    double total = 0;
    for (const double sum : sums) total += sum;
    result.data<double>()[0] += total;
  }
};

}  // namespace

template <>
const OptimizerKernels& kernels() {
  static const Optimizer instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::cpu
