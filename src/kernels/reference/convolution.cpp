#include <vector>

#include "kernels/field_extents.h"
#include "kernels/front/convolution_kernels.h"
#include "kernels/reference/wide.h"

namespace jigsaw::inline kernels::reference {

namespace {

/// The sums of a convolution: y = Σ x·w over all that meet. Which of the three is made is the caller's
/// choice.
class Sums {
 public:
  Sums(const Convolution& convolution, const Shape& x, const Shape& y)
      : x_(x),
        y_(y),
        kernel_(triple(convolution.window.extent, 1)),
        stride_(triple(convolution.window.stride, 1)),
        dilation_(triple(convolution.window.dilation, 1)),
        low_(triple(convolution.low, 0)),
        groups_(convolution.groups) {}

  /// Calls f(element of x, element of weight, element of y) for each product.
  template <typename F>
  void for_each(const F& f) const {
    for (std::int64_t b = 0; b < y_.samples; ++b)
      for (std::int64_t d = 0; d < y_.space[0]; ++d)
        for (std::int64_t h = 0; h < y_.space[1]; ++h)
          for (std::int64_t w = 0; w < y_.space[2]; ++w) for_window(b, d, h, w, f);
  }

 private:
  template <typename F>
  void for_window(std::int64_t b, std::int64_t d, std::int64_t h, std::int64_t w, const F& f) const {
    const std::int64_t y = y_.point(b, d, h, w) * y_.channels;
    std::int64_t tap = 0;
    for (std::int64_t i = 0; i < kernel_[0]; ++i)
      for (std::int64_t j = 0; j < kernel_[1]; ++j)
        for (std::int64_t k = 0; k < kernel_[2]; ++k, ++tap) {
          const Triple at = {d * stride_[0] + i * dilation_[0] - low_[0],
                             h * stride_[1] + j * dilation_[1] - low_[1],
                             w * stride_[2] + k * dilation_[2] - low_[2]};
          if (inside(at)) for_channels(x_.point(b, at[0], at[1], at[2]) * x_.channels, tap, y, f);
        }
  }

  /// Elsewhere are zeros.
  bool inside(const Triple& at) const {
    for (std::size_t i = 0; i < at.size(); ++i) {
      if (at[i] < 0 || at[i] >= x_.space[i]) return false;
    }
    return true;
  }

  template <typename F>
  void for_channels(std::int64_t x, std::int64_t tap, std::int64_t y, const F& f) const {
    const std::int64_t in = x_.channels / groups_, out = y_.channels / groups_;
    const std::int64_t taps = kernel_[0] * kernel_[1] * kernel_[2];
    for (std::int64_t o = 0; o < y_.channels; ++o) {
      const std::int64_t first = o / out * in;
      for (std::int64_t c = 0; c < in; ++c) f(x + first + c, (o * in + c) * taps + tap, y + o);
    }
  }

  FieldExtents x_, y_;
  Triple kernel_, stride_, dilation_, low_;
  std::int64_t groups_;
};

std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

class ConvolutionLoops : public ConvolutionKernels {
 public:
  void forward(Context&, const Convolution& convolution, const Array& x, const Array& weight,
               const Array& bias, Array& y) const override {
    const std::vector<double> xs = widened(x), weights = widened(weight), start = widened(bias);
    std::vector<double> sums(at(y.count()), 0.0);
    for (std::size_t i = 0; i < sums.size() && !start.empty(); ++i) sums[i] = start[i % start.size()];
    Sums(convolution, x.shape(), y.shape()).for_each([&](std::int64_t i, std::int64_t j, std::int64_t k) {
      sums[at(k)] += xs[at(i)] * weights[at(j)];
    });
    store(sums, y);
  }

  void backward_data(Context&, const Convolution& convolution, const Array& dy, const Array& weight,
                     Array& dx) const override {
    const std::vector<double> slopes = widened(dy), weights = widened(weight);
    std::vector<double> sums(at(dx.count()), 0.0);
    Sums(convolution, dx.shape(), dy.shape()).for_each([&](std::int64_t i, std::int64_t j, std::int64_t k) {
      sums[at(i)] += slopes[at(k)] * weights[at(j)];
    });
    store(sums, dx);
  }

  void backward_weight(Context&, const Convolution& convolution, const Array& dy, const Array& x, Array& dw,
                       bool add) const override {
    const std::vector<double> slopes = widened(dy), xs = widened(x);
    std::vector<double> sums = add ? widened(dw) : std::vector<double>(at(dw.count()), 0.0);
    Sums(convolution, x.shape(), dy.shape()).for_each([&](std::int64_t i, std::int64_t j, std::int64_t k) {
      sums[at(j)] += slopes[at(k)] * xs[at(i)];
    });
    store(sums, dw);
  }
};

}  // namespace

template <>
const ConvolutionKernels& kernels() {
  static const ConvolutionLoops instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::reference
