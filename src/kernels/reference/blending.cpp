#include "array/raw_memory.h"
#include "kernels/front/blending_kernels.h"

namespace jigsaw::inline kernels::reference {

namespace {

class Blending : public BlendingKernels {
 public:
  /// Row by row: points along the last dim follow each other in all of them.
  void add_weighted(Context&, const Array& values, const Array& weights, const Box& of, Array& target,
                    const Box& to, unsigned mirrored) const override {
    const Shape of_weights = weights.shape().strides(), of_target = target.shape().strides();
    const int last = of.extent.rank() - 1;
    const std::int64_t channels = values.shape().back(), points = of.extent[last];
    const std::int64_t rows = of.extent.count(0, last);
    const auto place = [&](int dim, std::int64_t index) {
      return (mirrored >> dim & 1) != 0 ? of.extent[dim] - 1 - index : index;
    };
    visit(values.dtype(), [&](auto zero) {
      const auto* value = values.data<decltype(zero)>();
      for (std::int64_t row = 0; row < rows; ++row) {
        const double* weights_of_row = weights.data<double>() + of.begin[last];
        double* sums = target.data<double>() + to.begin[last] * of_target[last] + to.begin[last + 1];
        std::int64_t rest = row;
        for (int dim = last - 1; dim >= 0; --dim) {
          const std::int64_t index = place(dim, rest % of.extent[dim]);
          rest /= of.extent[dim];
          weights_of_row += (of.begin[dim] + index) * of_weights[dim];
          sums += (to.begin[dim] + index) * of_target[dim];
        }
        for (std::int64_t point = 0; point < points; ++point) {
          const double weight = weights_of_row[place(last, point)];
          double* sum = sums + place(last, point) * of_target[last];
          for (std::int64_t c = 0; c < channels; ++c) sum[c] += weight * static_cast<double>(value[c]);
          value += channels;
        }
      }
    });
  }
};

}  // namespace

template <>
const BlendingKernels& kernels() {
  static const Blending instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::reference
