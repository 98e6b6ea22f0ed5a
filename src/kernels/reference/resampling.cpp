#include "kernels/field_extents.h"
#include "kernels/front/resampling_kernels.h"
#include "kernels/reference/wide.h"

namespace jigsaw::inline kernels::reference {

namespace {

/// One end of a tap along each dim.
struct Corner {
  std::int64_t index;
  double weight;
};

/// Calls f(element of the source, element of the target, weight) for all that meet.
template <typename F>
void for_each(const Resampling& resampling, const Shape& source, const Shape& target, const F& f) {
  const FieldExtents from(source), to(target);
  std::array<std::vector<ResamplingTap>, 3> taps;
  for (std::size_t dim = 0; dim < 3; ++dim) {
    const int given = static_cast<int>(dim) - 3 + resampling.target.extent.rank();
    taps[dim] = given < 0 ? std::vector<ResamplingTap>(1) : resampling_taps(resampling, given);
  }
  const auto corner = [&](std::size_t dim, std::int64_t point, int end) {
    const ResamplingTap& tap = taps[dim][static_cast<std::size_t>(point)];
    return end == 0 ? Corner{tap.low, 1.0 - tap.share} : Corner{tap.high, tap.share};
  };
  for (std::int64_t b = 0; b < to.samples; ++b)
    for (std::int64_t d = 0; d < to.space[0]; ++d)
      for (std::int64_t h = 0; h < to.space[1]; ++h)
        for (std::int64_t w = 0; w < to.space[2]; ++w)
          for (int ends = 0; ends < 8; ++ends) {
            const Corner i = corner(0, d, ends >> 2), j = corner(1, h, ends >> 1 & 1),
                         k = corner(2, w, ends & 1);
            const double weight = i.weight * j.weight * k.weight;
            if (weight == 0.0) continue;
            for (std::int64_t c = 0; c < to.channels; ++c) {
              f(from.point(b, i.index, j.index, k.index) * from.channels + c,
                to.point(b, d, h, w) * to.channels + c, weight);
            }
          }
}

class ResamplingLoops : public ResamplingKernels {
 public:
  void forward(Context&, const Resampling& resampling, const Array& x, Array& y) const override {
    const std::vector<double> xs = widened(x);
    std::vector<double> sums(static_cast<std::size_t>(y.count()), 0.0);
    for_each(resampling, x.shape(), y.shape(), [&](std::int64_t from, std::int64_t to, double weight) {
      sums[static_cast<std::size_t>(to)] += weight * xs[static_cast<std::size_t>(from)];
    });
    store(sums, y);
  }

  void backward(Context&, const Resampling& resampling, const Array& dy, Array& dx) const override {
    const std::vector<double> slopes = widened(dy);
    std::vector<double> sums(static_cast<std::size_t>(dx.count()), 0.0);
    for_each(resampling, dx.shape(), dy.shape(), [&](std::int64_t from, std::int64_t to, double weight) {
      sums[static_cast<std::size_t>(from)] += weight * slopes[static_cast<std::size_t>(to)];
    });
    store(sums, dx);
  }
};

}  // namespace

template <>
const ResamplingKernels& kernels() {
  static const ResamplingLoops instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::reference
