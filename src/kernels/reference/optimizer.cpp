#include <cmath>

#include "array/raw_memory.h"
#include "kernels/front/optimizer_kernels.h"
#include "kernels/loss.h"

namespace jigsaw::inline kernels::reference {

namespace {

/// Of UpdateNumbers.
double number(const Array& numbers, UpdateNumbers::Kind kind) {
  return numbers.data<double>()[kind];
}
bool applies(const Array& numbers) {
  return number(numbers, UpdateNumbers::kApplies) != 0;
}

/// Where there is a copy, the element becomes what the array has there.
template <typename T>
void copy_element(const Array& from, Array& copy, std::int64_t i) {
  if (copy.defined()) copy.data<BFloat16>()[i] = static_cast<BFloat16>(static_cast<float>(from.data<T>()[i]));
}

/// How an element decays: by a factor of its own, or in its gradient.
struct Decay {
  double factor, in_gradient;

  Decay(bool decoupled, double learning_rate, double weight_decay)
      : factor(decoupled ? 1.0 - learning_rate * weight_decay : 1.0),
        in_gradient(decoupled ? 0.0 : weight_decay) {}
};

template <typename T>
void adamw_typed(const AdamwOptions& options, const TrainedRun& run, const Array& numbers, Array& parameter,
                 const Array& gradient, Array& moment1, Array& moment2, Array& copy) {
  const double learning_rate = run.learning_rate * number(numbers, UpdateNumbers::kRateFactor);
  const double scale = number(numbers, UpdateNumbers::kGradientScale);
  const double updates = number(numbers, UpdateNumbers::kUpdates);
  const double correction1 = 1.0 - std::pow(options.beta1, updates);
  const double correction2 = 1.0 - std::pow(options.beta2, updates);
  const Decay decay(options.decoupled, learning_rate, run.weight_decay);
  for (std::int64_t i = run.at; i < run.at + run.count; ++i) {
    const auto before = static_cast<double>(parameter.data<T>()[i]);
    const double g = static_cast<double>(gradient.data<T>()[i]) * scale + decay.in_gradient * before;
    const double m = options.beta1 * static_cast<double>(moment1.data<T>()[i]) + (1.0 - options.beta1) * g;
    const double v =
        options.beta2 * static_cast<double>(moment2.data<T>()[i]) + (1.0 - options.beta2) * g * g;
    moment1.data<T>()[i] = static_cast<T>(m);
    moment2.data<T>()[i] = static_cast<T>(v);
    const double update = m / correction1 / (std::sqrt(v / correction2) + options.eps);
    parameter.data<T>()[i] = static_cast<T>(before * decay.factor - learning_rate * update);
    copy_element<T>(parameter, copy, i);
  }
}

template <typename T>
void sgd_typed(const Momentum& momentum, const TrainedRun& run, const Array& numbers, Array& parameter,
               const Array& gradient, Array& velocity, Array& copy) {
  const double learning_rate = run.learning_rate * number(numbers, UpdateNumbers::kRateFactor);
  const double scale = number(numbers, UpdateNumbers::kGradientScale);
  const Decay decay(momentum.decoupled, learning_rate, run.weight_decay);
  for (std::int64_t i = run.at; i < run.at + run.count; ++i) {
    const auto before = static_cast<double>(parameter.data<T>()[i]);
    const double g = static_cast<double>(gradient.data<T>()[i]) * scale + decay.in_gradient * before;
    const double v = momentum.kept * static_cast<double>(velocity.data<T>()[i]) + g;
    velocity.data<T>()[i] = static_cast<T>(v);
    const double step = momentum.nesterov ? g + momentum.kept * v : v;
    parameter.data<T>()[i] = static_cast<T>(before * decay.factor - learning_rate * step);
    copy_element<T>(parameter, copy, i);
  }
}

template <typename T>
void follow_typed(const TrainedRun& run, Array& statistic, const Array& gradient, Array& copy) {
  for (std::int64_t i = run.at; i < run.at + run.count; ++i) {
    statistic.data<T>()[i] = static_cast<T>(static_cast<double>(statistic.data<T>()[i]) -
                                            run.learning_rate * static_cast<double>(gradient.data<T>()[i]));
    copy_element<T>(statistic, copy, i);
  }
}

class Optimizer : public OptimizerKernels {
 public:
  void decide(Context&, const GradientTerms& terms, const Array& loss, const Array& squares,
              Array& numbers) const override {
    const double* const found = loss.data<double>();
    const double sum = found[MeanParts::kSum], weight = found[MeanParts::kWeight];
    const double square = squares.data<double>()[0];
    const double scale = terms.full_weight / weight, norm = gradient_norm(square, scale);
    const bool applies = weight > 0 && std::isfinite(sum / weight) && std::isfinite(norm);
    double* const all = numbers.data<double>();
    all[UpdateNumbers::kSum] = sum;
    all[UpdateNumbers::kWeight] = weight;
    all[UpdateNumbers::kEmpty] = found[MeanParts::kEmpty];
    all[UpdateNumbers::kSquares] = square;
    all[UpdateNumbers::kApplies] = applies ? 1 : 0;
    all[UpdateNumbers::kGradientScale] = scale * clip_factor(norm, terms.clip_norm);
    all[UpdateNumbers::kUpdates] += applies ? 1 : 0;
  }

  void adamw(Context&, const AdamwOptions& options, std::span<const TrainedRun> runs, const Array& numbers,
             Array& parameter, const Array& gradient, Array& moment1, Array& moment2,
             Array& copy) const override {
    if (!applies(numbers)) return;
    visit(parameter.dtype(), [&](auto zero) {
      for (const TrainedRun& run : runs) {
        adamw_typed<decltype(zero)>(options, run, numbers, parameter, gradient, moment1, moment2, copy);
      }
    });
  }

  void sgd(Context&, const Momentum& momentum, std::span<const TrainedRun> runs, const Array& numbers,
           Array& parameter, const Array& gradient, Array& velocity, Array& copy) const override {
    if (!applies(numbers)) return;
    visit(parameter.dtype(), [&](auto zero) {
      for (const TrainedRun& run : runs)
        sgd_typed<decltype(zero)>(momentum, run, numbers, parameter, gradient, velocity, copy);
    });
  }

  void follow(Context&, std::span<const TrainedRun> runs, const Array& numbers, Array& statistic,
              const Array& gradient, Array& copy) const override {
    if (!applies(numbers)) return;
    visit(statistic.dtype(), [&](auto zero) {
      for (const TrainedRun& run : runs) follow_typed<decltype(zero)>(run, statistic, gradient, copy);
    });
  }

  void exponential_average(Context&, double decay, const Array& numbers, Array& average,
                           const Array& parameter) const override {
    if (!applies(numbers)) return;
    const double keep = average_decay(decay, number(numbers, UpdateNumbers::kUpdates));
    visit(average.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for (std::int64_t i = 0; i < average.count(); ++i) {
        average.data<T>()[i] = static_cast<T>(keep * static_cast<double>(average.data<T>()[i]) +
                                              (1.0 - keep) * static_cast<double>(parameter.data<T>()[i]));
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
