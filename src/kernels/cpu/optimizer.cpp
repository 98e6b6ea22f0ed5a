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
  void adamw(Context& context, const AdamwStep& step, std::span<const TrainedRun> runs, Array& parameter,
             const Array& gradient, Array& moment1, Array& moment2) const override {
    const double correction1 = 1.0 - std::pow(step.beta1, static_cast<double>(step.step));
    const double correction2 = 1.0 - std::pow(step.beta2, static_cast<double>(step.step));
    const auto scale = static_cast<float>(step.gradient_scale), eps = static_cast<float>(step.eps);
    const auto beta1 = static_cast<float>(step.beta1), beta2 = static_cast<float>(step.beta2);
    const auto rest1 = static_cast<float>(1.0 - step.beta1), rest2 = static_cast<float>(1.0 - step.beta2);
    const auto root2 = static_cast<float>(1.0 / std::sqrt(correction2));
    float *const p = parameter.data<float>(), *const m = moment1.data<float>(),
                 *const v = moment2.data<float>();
    const float* const g = gradient.data<float>();
    const std::int64_t count = parameter.count();
    for_ranges(threads_for(context, count, 1), count, kStep, [&](std::int64_t begin, std::int64_t end, int) {
      for (const TrainedRun& run : runs) {
        const std::int64_t first = std::max(begin, run.at), last = std::min(end, run.at + run.count);
        const double learning_rate = run.learning_rate * step.rate_factor;
        const auto keep = static_cast<float>(1.0 - learning_rate * run.weight_decay);
        const auto rate = static_cast<float>(learning_rate / correction1);
        vectorized([=] {
          for (std::int64_t i = first; i < last; ++i) {
            const float slope = g[i] * scale;
            m[i] = beta1 * m[i] + rest1 * slope;
            v[i] = beta2 * v[i] + rest2 * slope * slope;
            p[i] = p[i] * keep - rate * m[i] / (std::sqrt(v[i]) * root2 + eps);
          }
        });
      }
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

  /// Blocks of fixed size of each run, summed in order: any number of threads gives the same bits.
  void squares_of_runs(Context& context, std::span<const TrainedRun> runs, const Array& x,
                       Array& sum) const override {
    constexpr std::int64_t kBlock = 8192;
    struct Block {
      std::int64_t at, count;
      double sum;
    };
    std::vector<Block> blocks;
    for (const TrainedRun& run : runs) {
      for (std::int64_t at = 0; at < run.count; at += kBlock)
        blocks.push_back({run.at + at, std::min(kBlock, run.count - at), 0});
    }
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for_ranges(threads_for(context, std::ssize(blocks), kBlock), std::ssize(blocks), 1,
                 [&](std::int64_t begin, std::int64_t end, int) {
                   for (std::int64_t i = begin; i < end; ++i) {
                     Block& block = blocks[static_cast<std::size_t>(i)];
                     const T* const values = x.data<T>() + block.at;
                     vectorized([values, &block] {
                       block.sum = lane_sum<double>(block.count, [values](std::int64_t j) {
                         const auto value = static_cast<double>(values[j]);
                         return value * value;
                       });
                     });
                   }
                 });
    });
    auto block = blocks.begin();
    for (const TrainedRun& run : runs) {
      double total = 0;
      for (; block != blocks.end() && block->at < run.at + run.count; ++block) total += block->sum;
      sum.data<double>()[0] += total;
    }
  }
};

}  // namespace

template <>
const OptimizerKernels& kernels() {
  static const Optimizer instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::cpu
