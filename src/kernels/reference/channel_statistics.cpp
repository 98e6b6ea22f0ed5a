#include "kernels/front/channel_statistics_kernels.h"
#include "kernels/reference/activation.h"
#include "kernels/reference/wide.h"

namespace jigsaw::inline kernels::reference {

namespace {

/// Calls f(element of x, number of its sample and channel) for each element of x [n, points, c], point by
/// point.
template <typename F>
void for_each(const Array& x, const F& f) {
  const std::int64_t points = x.shape()[1], channels = x.shape()[2];
  for (std::int64_t i = 0; i < x.count(); ++i) {
    f(static_cast<std::size_t>(i), static_cast<std::size_t>(i / channels / points * channels + i % channels));
  }
}

/// A map in float64.
struct WideMap {
  explicit WideMap(const ChannelMap& map)
      : centre(widened(map.centre)),
        factor(widened(map.factor)),
        shift(widened(map.shift)),
        activation(map.activation) {}

  /// What the activation gets of an element.
  double linear(double x, std::size_t at) const {
    return (x - centre[at]) * factor[at] + (shift.empty() ? 0.0 : shift[at % shift.size()]);
  }
  double slope(double dy, double x, std::size_t at) const {
    return dy * activation_derivative(activation, linear(x, at));
  }

  std::vector<double> centre, factor, shift;
  Activation activation;
};

class ChannelStatistics : public ChannelStatisticsKernels {
 public:
  void moments(Context&, const Array& x, Moments& moments) const override {
    const std::vector<double> xs = widened(x);
    std::vector<double> mean(static_cast<std::size_t>(moments.mean.count()), 0.0), m2 = mean;
    const auto points = static_cast<double>(x.shape()[1]);
    for_each(x, [&](std::size_t i, std::size_t at) { mean[at] += xs[i] / points; });
    for_each(x, [&](std::size_t i, std::size_t at) { m2[at] += (xs[i] - mean[at]) * (xs[i] - mean[at]); });
    store(mean, moments.mean);
    store(m2, moments.m2);
  }

  void apply(Context&, const Array& x, const ChannelMap& map, Array& y) const override {
    const WideMap wide(map);
    std::vector<double> values = widened(x);
    for_each(x, [&](std::size_t i, std::size_t at) {
      values[i] = activated(wide.activation, wide.linear(values[i], at));
    });
    store(values, y);
  }

  void gradient_sums(Context&, const Array& dy, const Array& x, const ChannelMap& map,
                     Array& sums) const override {
    const WideMap wide(map);
    const std::vector<double> dys = widened(dy), xs = widened(x);
    std::vector<double> all(2 * wide.centre.size(), 0.0);
    for_each(x, [&](std::size_t i, std::size_t at) {
      const double slope = wide.slope(dys[i], xs[i], at);
      all[at] += slope;
      all[wide.centre.size() + at] += slope * (xs[i] - wide.centre[at]);
    });
    store(all, sums);
  }

  void gradient(Context&, const Array& dy, const Array& x, const ChannelMap& map, const Array& b,
                const Array& c, Array& dx) const override {
    const WideMap wide(map);
    const std::vector<double> xs = widened(x), bs = widened(b), cs = widened(c);
    std::vector<double> values = widened(dy);
    for_each(x, [&](std::size_t i, std::size_t at) {
      values[i] =
          wide.factor[at] * wide.slope(values[i], xs[i], at) + bs[at] * (xs[i] - wide.centre[at]) + cs[at];
    });
    store(values, dx);
  }
};

}  // namespace

template <>
const ChannelStatisticsKernels& kernels() {
  static const ChannelStatistics instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::reference
