#include <limits>

#include "array/raw_memory.h"
#include "kernels/front/relative_bias_kernels.h"
#include "kernels/reference/wide.h"

namespace jigsaw::inline kernels::reference {

namespace {

/// Calls f(row of the table, index into [query, key]) for every pair of points of a window.
template <typename F>
void for_pairs(const Shape& window, const F& f) {
  const std::int64_t points = window.count();
  for (std::int64_t query = 0; query < points; ++query) {
    for (std::int64_t key = 0; key < points; ++key) {
      std::int64_t row = 0, stride = 1, q = query, k = key;
      for (int dim = window.rank() - 1; dim >= 0; --dim) {
        row += (q % window[dim] - k % window[dim] + window[dim] - 1) * stride;
        stride *= 2 * window[dim] - 1;
        q /= window[dim], k /= window[dim];
      }
      f(row, query * points + key);
    }
  }
}

/// On which side of the ends of the wrapped dims point `point` of window `number` lies, a bit per dim.
int side_of(const WrappedWindows& windows, std::int64_t number, std::int64_t point) {
  int side = 0;
  for (int dim = windows.window.rank() - 1; dim >= 0; --dim) {
    const std::int64_t width = windows.window[dim], count = windows.piece.extent[dim] / width;
    const std::int64_t at = windows.piece.begin[dim] + number % count * width + point % width;
    side = 2 * side + (at >= windows.space[dim] - windows.wrapped[dim] ? 1 : 0);
    number /= count, point /= width;
  }
  return side;
}

class RelativeBias : public RelativeBiasKernels {
 public:
  void forward(Context&, const Array& table, const Shape& window, Array& bias) const override {
    const std::int64_t heads = table.shape()[1], plane = window.count() * window.count();
    visit(table.dtype(), [&](auto zero) {
      using T = Accumulator<decltype(zero)>;
      for_pairs(window, [&](std::int64_t row, std::int64_t pair) {
        for (std::int64_t head = 0; head < heads; ++head) {
          bias.data<T>()[head * plane + pair] = table.data<T>()[row * heads + head];
        }
      });
    });
  }

  /// Sums in float64: a row gathers from as many pairs as a window has points.
  void backward(Context&, const Array& dbias, const Shape& window, Array& table) const override {
    const std::int64_t heads = table.shape()[1], plane = window.count() * window.count();
    std::vector<double> sums(static_cast<std::size_t>(table.count()), 0.0);
    visit(dbias.dtype(), [&](auto zero) {
      using T = Accumulator<decltype(zero)>;
      for_pairs(window, [&](std::int64_t row, std::int64_t pair) {
        for (std::int64_t head = 0; head < heads; ++head) {
          sums[static_cast<std::size_t>(row * heads + head)] +=
              static_cast<double>(dbias.data<T>()[head * plane + pair]);
        }
      });
    });
    store(sums, table);
  }

  void wrap_mask(Context&, const WrappedWindows& windows, Array& mask) const override {
    const std::int64_t points = windows.window.count();
    std::vector<int> sides(static_cast<std::size_t>(points));
    visit(mask.dtype(), [&](auto zero) {
      using T = Accumulator<decltype(zero)>;
      T* to = mask.data<T>();
      for (std::int64_t number = 0; number < windows.windows(); ++number) {
        for (std::int64_t point = 0; point < points; ++point) {
          sides[static_cast<std::size_t>(point)] = side_of(windows, number, point);
        }
        for (const int query : sides) {
          for (const int key : sides) *to++ = query == key ? T{0} : -std::numeric_limits<T>::infinity();
        }
      }
    });
  }
};

}  // namespace

template <>
const RelativeBiasKernels& kernels() {
  static const RelativeBias instance;
  return instance;
}

}  // namespace jigsaw::inline kernels::reference
