#include <cmath>

#include "array/raw_memory.h"
#include "kernels/front/optimizer_kernels.h"

namespace jigsaw::inline kernels::reference {

namespace {

template <typename T>
void adamw_typed(const AdamwStep& step, const TrainedRun& run, Array& parameter, const Array& gradient,
                 Array& moment1, Array& moment2) {
  const double learning_rate = run.learning_rate * step.rate_factor;
  const double correction1 = 1.0 - std::pow(step.beta1, static_cast<double>(step.step));
  const double correction2 = 1.0 - std::pow(step.beta2, static_cast<double>(step.step));
  for (std::int64_t i = run.at; i < run.at + run.count; ++i) {
    const double g = static_cast<double>(gradient.data<T>()[i]) * step.gradient_scale;
    const double m = step.beta1 * static_cast<double>(moment1.data<T>()[i]) + (1.0 - step.beta1) * g;
    const double v = step.beta2 * static_cast<double>(moment2.data<T>()[i]) + (1.0 - step.beta2) * g * g;
    moment1.data<T>()[i] = static_cast<T>(m);
    moment2.data<T>()[i] = static_cast<T>(v);
    const double p = static_cast<double>(parameter.data<T>()[i]) * (1.0 - learning_rate * run.weight_decay);
    const double update = m / correction1 / (std::sqrt(v / correction2) + step.eps);
    parameter.data<T>()[i] = static_cast<T>(p - learning_rate * update);
  }
}

class Optimizer : public OptimizerKernels {
 public:
  void adamw(Context&, const AdamwStep& step, std::span<const TrainedRun> runs, Array& parameter,
             const Array& gradient, Array& moment1, Array& moment2) const override {
    visit(parameter.dtype(), [&](auto zero) {
      for (const TrainedRun& run : runs)
        adamw_typed<decltype(zero)>(step, run, parameter, gradient, moment1, moment2);
    });
  }

  void exponential_average(Context&, double decay, Array& average, const Array& parameter) const override {
    visit(average.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for (std::int64_t i = 0; i < average.count(); ++i) {
        average.data<T>()[i] = static_cast<T>(decay * static_cast<double>(average.data<T>()[i]) +
                                              (1.0 - decay) * static_cast<double>(parameter.data<T>()[i]));
      }
    });
  }

  void squares_of_runs(Context&, std::span<const TrainedRun> runs, const Array& x,
                       Array& sum) const override {
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for (const TrainedRun& run : runs) {
        double total = 0;
        for (std::int64_t i = run.at; i < run.at + run.count; ++i)
          total += static_cast<double>(x.data<T>()[i]) * static_cast<double>(x.data<T>()[i]);
        sum.data<double>()[0] += total;
      }
    });
  }
};

}  // namespace

template <>
const OptimizerKernels& kernels() {
  static const Optimizer instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::reference
