#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/field_extents.h"
#include "kernels/front/pooling_kernels.h"
#include "kernels/reference/wide.h"

namespace jigsaw::inline kernels::reference {

namespace {

std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

/// The places of a pooling's window.
class Places {
 public:
  Places(const Pooling& pooling, const Shape& x, const Shape& y)
      : x_(x),
        y_(y),
        window_(triple(pooling.window.extent, 1)),
        stride_(triple(pooling.window.stride, 1)),
        dilation_(triple(pooling.window.dilation, 1)),
        begin_(triple(pooling.valid.begin, 0)),
        extent_(triple(pooling.valid.extent, 1)) {}

  /// Calls f(element of y, points) for each place and channel, where points(g) calls g(number in the
  /// window, element of x) for each valid point.
  template <typename F>
  void for_each(const F& f) const {
    for (std::int64_t b = 0; b < y_.samples; ++b)
      for (std::int64_t d = 0; d < y_.space[0]; ++d)
        for (std::int64_t h = 0; h < y_.space[1]; ++h)
          for (std::int64_t w = 0; w < y_.space[2]; ++w)
            for (std::int64_t c = 0; c < y_.channels; ++c) {
              f(y_.point(b, d, h, w) * y_.channels + c, [&](const auto& g) {
                for_points({d, h, w}, b, c, g);
              });
            }
  }

 private:
  template <typename G>
  void for_points(const Triple& place, std::int64_t b, std::int64_t c, const G& g) const {
    std::int64_t number = 0;
    for (std::int64_t i = 0; i < window_[0]; ++i)
      for (std::int64_t j = 0; j < window_[1]; ++j)
        for (std::int64_t k = 0; k < window_[2]; ++k, ++number) {
          const Triple in = {place[0] * stride_[0] + i * dilation_[0],
                             place[1] * stride_[1] + j * dilation_[1],
                             place[2] * stride_[2] + k * dilation_[2]};
          bool valid = true;
          for (std::size_t dim = 0; dim < 3; ++dim) {
            valid = valid && in[dim] >= begin_[dim] && in[dim] < begin_[dim] + extent_[dim];
          }
          if (valid) g(number, x_.point(b, in[0], in[1], in[2]) * x_.channels + c);
        }
  }

  FieldExtents x_, y_;
  Triple window_, stride_, dilation_, begin_, extent_;
};

class PoolingLoops : public PoolingKernels {
 public:
  void max_forward(Context&, const Pooling& pooling, const Array& x, Array& winners,
                   Array& y) const override {
    const std::vector<double> xs = widened(x);
    std::vector<double> largest(at(y.count()), -std::numeric_limits<double>::infinity());
    std::vector<double> winner(largest.size(), 0.0);
    Places(pooling, x.shape(), y.shape()).for_each([&](std::int64_t place, const auto& points) {
      bool first = true;
      points([&](std::int64_t number, std::int64_t i) {
        const double value = xs[at(i)];
        double& best = largest[at(place)];
        if (first || value > best || (std::isnan(value) && !std::isnan(best))) {
          best = value;
          winner[at(place)] = static_cast<double>(number);
        }
        first = false;
      });
    });
    store(largest, y);
    store(winner, winners);
  }

  void max_backward(Context&, const Pooling& pooling, const Array& dy, const Array& winners,
                    Array& dx) const override {
    const std::vector<double> slopes = widened(dy), winner = widened(winners);
    std::vector<double> sums(at(dx.count()), 0.0);
    Places(pooling, dx.shape(), dy.shape()).for_each([&](std::int64_t place, const auto& points) {
      points([&](std::int64_t number, std::int64_t i) {
        if (static_cast<double>(number) == winner[at(place)]) sums[at(i)] += slopes[at(place)];
      });
    });
    store(sums, dx);
  }

  void average_forward(Context&, const Pooling& pooling, const Array& x, Array& y) const override {
    const std::vector<double> xs = widened(x);
    std::vector<double> means(at(y.count()), 0.0);
    Places(pooling, x.shape(), y.shape()).for_each([&](std::int64_t place, const auto& points) {
      points([&](std::int64_t, std::int64_t i) { means[at(place)] += xs[at(i)]; });
      means[at(place)] /= divisor(pooling, points);
    });
    store(means, y);
  }

  void average_backward(Context&, const Pooling& pooling, const Array& dy, Array& dx) const override {
    const std::vector<double> slopes = widened(dy);
    std::vector<double> sums(at(dx.count()), 0.0);
    Places(pooling, dx.shape(), dy.shape()).for_each([&](std::int64_t place, const auto& points) {
      const double share = slopes[at(place)] / divisor(pooling, points);
      points([&](std::int64_t, std::int64_t i) { sums[at(i)] += share; });
    });
    store(sums, dx);
  }

 private:
  template <typename Points>
  static double divisor(const Pooling& pooling, const Points& points) {
    if (pooling.count_padding) return static_cast<double>(pooling.window.extent.count());
    std::int64_t valid = 0;
    points([&](std::int64_t, std::int64_t) { ++valid; });
    return static_cast<double>(std::max<std::int64_t>(valid, 1));
  }
};

}  // namespace

template <>
const PoolingKernels& kernels() {
  static const PoolingLoops instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::reference
