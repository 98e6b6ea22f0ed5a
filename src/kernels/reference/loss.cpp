#include <algorithm>
#include <cmath>

#include "kernels/loss_kernels.h"

namespace jigsaw::reference {

namespace {

/// Calls f(element, point, sample-and-channel, prediction − target) for every valid element.
template <typename F>
void for_each_valid(const Array& prediction, const Array& target, F&& f) {
  const std::int64_t channels = prediction.shape().back();
  const std::int64_t points = prediction.shape().count(1, prediction.rank() - 1);
  visit(prediction.dtype(), [&](auto p_zero) {
    visit(target.dtype(), [&](auto t_zero) {
      for (std::int64_t i = 0; i < prediction.count(); ++i) {
        const auto wanted = static_cast<double>(target.data<decltype(t_zero)>()[i]);
        if (std::isnan(wanted)) continue;
        const std::int64_t point = i / channels % points;
        const std::int64_t sample = i / channels / points;
        f(i, point, sample * channels + i % channels,
          static_cast<double>(prediction.data<decltype(p_zero)>()[i]) - wanted);
      }
    });
  });
}

class Loss : public LossKernels {
 public:
  void sums(Context&, ErrorNorm norm, const Array& prediction, const Array& target, const Array& weight,
            LossSums& sums) const override {
    std::ranges::fill(sums.numerator.span<double>(), 0.0);
    std::ranges::fill(sums.denominator.span<double>(), 0.0);
    for_each_valid(prediction, target, [&](std::int64_t, std::int64_t point, std::int64_t bc, double error) {
      const double w = weight.data<double>()[point];
      sums.numerator.data<double>()[bc] += w * (norm == ErrorNorm::kSquared    ? error * error
                                                : norm == ErrorNorm::kAbsolute ? std::abs(error)
                                                                               : error);
      sums.denominator.data<double>()[bc] += w;
    });
  }

  void gradient(Context&, ErrorNorm norm, const Array& prediction, const Array& target, const Array& weight,
                const Array& factor, Array& gradient) const override {
    visit(gradient.dtype(), [&](auto zero) {
      using T = decltype(zero);
      std::ranges::fill(gradient.span<T>(), T(0.0F));
      for_each_valid(prediction, target,
                     [&](std::int64_t i, std::int64_t point, std::int64_t bc, double error) {
                       const double sign = error > 0 ? 1.0 : error < 0 ? -1.0 : 0.0;
                       const double slope = norm == ErrorNorm::kSquared    ? 2.0 * error
                                            : norm == ErrorNorm::kAbsolute ? sign
                                                                           : 1.0;
                       gradient.data<T>()[i] =
                           static_cast<T>(factor.data<double>()[bc] * weight.data<double>()[point] * slope);
                     });
    });
  }
};

}  // namespace

template <>
const LossKernels& kernels() {
  static const Loss instance;
  return instance;
}

}  // namespace jigsaw::reference
