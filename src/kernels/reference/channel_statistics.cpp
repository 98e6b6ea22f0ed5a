#include "kernels/front/channel_statistics_kernels.h"
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

  void apply(Context&, const Array& x, const Array& centre, const Array& factor, const Array& shift,
             Array& y) const override {
    const std::vector<double> centres = widened(centre), factors = widened(factor), shifts = widened(shift);
    std::vector<double> values = widened(x);
    for_each(x, [&](std::size_t i, std::size_t at) {
      values[i] =
          (values[i] - centres[at]) * factors[at] + (shifts.empty() ? 0.0 : shifts[at % shifts.size()]);
    });
    store(values, y);
  }

  void gradient_sums(Context&, const Array& dy, const Array& x, const Array& centre,
                     Array& sums) const override {
    const std::vector<double> slopes = widened(dy), xs = widened(x), centres = widened(centre);
    std::vector<double> all(2 * centres.size(), 0.0);
    for_each(x, [&](std::size_t i, std::size_t at) {
      all[at] += slopes[i];
      all[centres.size() + at] += slopes[i] * (xs[i] - centres[at]);
    });
    store(all, sums);
  }

  void gradient(Context&, const Array& dy, const Array& x, const Array& centre, const Array& a,
                const Array& b, const Array& c, Array& dx) const override {
    const std::vector<double> xs = widened(x), centres = widened(centre), as = widened(a), bs = widened(b),
                              cs = widened(c);
    std::vector<double> values = widened(dy);
    for_each(x, [&](std::size_t i, std::size_t at) {
      values[i] = as[at] * values[i] + bs[at] * (xs[i] - centres[at]) + cs[at];
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
