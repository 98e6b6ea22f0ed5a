#include <cmath>
#include <vector>

#include "array/parallel.h"
#include "array/raw_memory.h"
#include "kernels/cpu/lane_sum.h"
#include "kernels/cpu/vectorize.h"
#include "kernels/front/optimizer_kernels.h"

namespace jigsaw::inline kernels::cpu {

namespace {

/// Ranges of elements start on whole cache lines.
constexpr std::int64_t kStep = 1024;

/// Of UpdateNumbers.
double number(const Array& numbers, UpdateNumbers::Kind kind) {
  return numbers.data<double>()[kind];
}
bool applies(const Array& numbers) {
  return number(numbers, UpdateNumbers::kApplies) != 0;
}

/// Calls update(run, first, last) for elements [first, last) of each run, on all threads; behind it the copy,
/// where there is one, becomes what `values` are.
template <typename F>
void for_runs(Context& context, std::span<const TrainedRun> runs, const Array& values, Array& copy,
              const F& update) {
  const std::int64_t count = values.count();
  const float* const from = values.data<float>();
  BFloat16* const to = copy.defined() ? copy.data<BFloat16>() : nullptr;
  for_ranges(threads_for(context, count, 1), count, kStep, [&](std::int64_t begin, std::int64_t end, int) {
    for (const TrainedRun& run : runs) {
      const std::int64_t first = std::max(begin, run.at), last = std::min(end, run.at + run.count);
      if (first >= last) continue;
      update(run, first, last);
      for (std::int64_t i = first; to != nullptr && i < last; ++i) to[i] = BFloat16(from[i]);
    }
  });
}

/// How an element decays: by a factor of its own, or in its gradient.
struct Decay {
  float factor, in_gradient;

  Decay(bool decoupled, double learning_rate, double weight_decay)
      : factor(static_cast<float>(decoupled ? 1.0 - learning_rate * weight_decay : 1.0)),
        in_gradient(static_cast<float>(decoupled ? 0.0 : weight_decay)) {}
};

class Optimizer : public OptimizerKernels {
 public:
  void decide(Context& context, const GradientTerms& terms, const Array& loss, const Array& squares,
              Array& numbers) const override {
    reference::kernels<OptimizerKernels>().decide(context, terms, loss, squares, numbers);
  }

  void adamw(Context& context, const AdamwOptions& options, std::span<const TrainedRun> runs,
             const Array& numbers, Array& parameter, const Array& gradient, Array& moment1, Array& moment2,
             Array& copy) const override {
    if (!applies(numbers)) return;
    const double updates = number(numbers, UpdateNumbers::kUpdates),
                 factor = number(numbers, UpdateNumbers::kRateFactor);
    const double correction1 = 1.0 - std::pow(options.beta1, updates);
    const double correction2 = 1.0 - std::pow(options.beta2, updates);
    const auto scale = static_cast<float>(number(numbers, UpdateNumbers::kGradientScale));
    const auto eps = static_cast<float>(options.eps);
    const auto beta1 = static_cast<float>(options.beta1), beta2 = static_cast<float>(options.beta2);
    const auto rest1 = static_cast<float>(1.0 - options.beta1);
    const auto rest2 = static_cast<float>(1.0 - options.beta2);
    const auto root2 = static_cast<float>(1.0 / std::sqrt(correction2));
    float *const p = parameter.data<float>(), *const m = moment1.data<float>(),
                 *const v = moment2.data<float>();
    const float* const g = gradient.data<float>();
    for_runs(context, runs, parameter, copy,
             [=](const TrainedRun& run, std::int64_t first, std::int64_t last) {
               const double learning_rate = run.learning_rate * factor;
               const Decay decay(options.decoupled, learning_rate, run.weight_decay);
               const auto rate = static_cast<float>(learning_rate / correction1);
               vectorized([=] {
                 for (std::int64_t i = first; i < last; ++i) {
                   const float slope = g[i] * scale + decay.in_gradient * p[i];
                   m[i] = beta1 * m[i] + rest1 * slope;
                   v[i] = beta2 * v[i] + rest2 * slope * slope;
                   p[i] = p[i] * decay.factor - rate * m[i] / (std::sqrt(v[i]) * root2 + eps);
                 }
               });
             });
  }

  void sgd(Context& context, const Momentum& momentum, std::span<const TrainedRun> runs, const Array& numbers,
           Array& parameter, const Array& gradient, Array& velocity, Array& copy) const override {
    if (!applies(numbers)) return;
    const double factor = number(numbers, UpdateNumbers::kRateFactor);
    const auto scale = static_cast<float>(number(numbers, UpdateNumbers::kGradientScale));
    const auto kept = static_cast<float>(momentum.kept);
    // A step is along `direction`·v + `gradient_part`·g: v itself, or of Nesterov what is ahead of it.
    const float direction = momentum.nesterov ? kept : 1.0F, gradient_part = momentum.nesterov ? 1.0F : 0.0F;
    float *const p = parameter.data<float>(), *const v = velocity.data<float>();
    const float* const g = gradient.data<float>();
    for_runs(context, runs, parameter, copy,
             [=](const TrainedRun& run, std::int64_t first, std::int64_t last) {
               const double learning_rate = run.learning_rate * factor;
               const Decay decay(momentum.decoupled, learning_rate, run.weight_decay);
               const auto rate = static_cast<float>(learning_rate);
               vectorized([=] {
                 for (std::int64_t i = first; i < last; ++i) {
                   const float slope = scale * g[i] + decay.in_gradient * p[i];
                   v[i] = kept * v[i] + slope;
                   p[i] = decay.factor * p[i] - rate * (direction * v[i] + gradient_part * slope);
                 }
               });
             });
  }

  void follow(Context& context, std::span<const TrainedRun> runs, const Array& numbers, Array& statistic,
              const Array& gradient, Array& copy) const override {
    if (!applies(numbers)) return;
    float* const p = statistic.data<float>();
    const float* const g = gradient.data<float>();
    for_runs(context, runs, statistic, copy,
             [=](const TrainedRun& run, std::int64_t first, std::int64_t last) {
               const auto rate = static_cast<float>(run.learning_rate);
               vectorized([=] {
                 for (std::int64_t i = first; i < last; ++i) p[i] = p[i] - rate * g[i];
               });
             });
  }

  void exponential_average(Context& context, double decay, const Array& numbers, Array& average,
                           const Array& parameter) const override {
    if (!applies(numbers)) return;
    float* const a = average.data<float>();
    const float* const p = parameter.data<float>();
    const double now = average_decay(decay, number(numbers, UpdateNumbers::kUpdates));
    const auto keep = static_cast<float>(now), rest = static_cast<float>(1.0 - now);
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
