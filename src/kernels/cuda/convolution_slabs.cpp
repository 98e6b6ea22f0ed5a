#include "kernels/cuda/convolution_slabs.h"

#include <algorithm>
#include <optional>

#include "array/raw_memory.h"

namespace jigsaw::inline kernels::cuda {

namespace {

/// Rows [begin, end) along the first spatial dim.
struct Rows {
  std::int64_t begin, end;
};

std::int64_t floor_of(std::int64_t a, std::int64_t b) {
  return a >= 0 ? a / b : -((b - 1 - a) / b);
}

/// What the windows of rows of y read of x, or which rows of y read rows of x, `low` zeros before its first.
Rows read_by(const Window& window, std::int64_t low, const Rows& y) {
  return {y.begin * window.stride[0] - low, (y.end - 1) * window.stride[0] + window.reach(0) - low};
}
Rows reading(const Window& window, std::int64_t low, const Rows& x) {
  const std::int64_t stride = window.stride[0];
  return {floor_of(x.begin + low - window.reach(0), stride) + 1, floor_of(x.end - 1 + low, stride) + 1};
}

Rows within(const Rows& rows, std::int64_t count) {
  return {std::max<std::int64_t>(rows.begin, 0), std::min(rows.end, count)};
}

/// Views of rows of a sample.
Array rows_of(const Array& field, std::int64_t sample, const Rows& rows) {
  Shape shape = field.shape();
  shape[0] = 1;
  const std::int64_t row = shape.count(2, shape.rank()), first = sample * shape[1] + rows.begin;
  shape[1] = rows.end - rows.begin;
  return field.slice(first * row, shape);
}

bool aligned(const Array& array) {
  return reinterpret_cast<std::uintptr_t>(array.raw()) % 16 == 0;
}

/// The convolution between rows of x and of y; none where its zeros would be fewer than none.
std::optional<Convolution> between(Convolution convolution, const Rows& x, const Rows& y) {
  const Shape none = Shape::filled(convolution.window.extent.rank(), 0);
  if (convolution.low.rank() == 0) convolution.low = none;
  if (convolution.high.rank() == 0) convolution.high = none;
  if (x.begin >= x.end || y.begin >= y.end) return std::nullopt;
  const Rows read = read_by(convolution.window, convolution.low[0], y);
  convolution.low[0] = x.begin - read.begin;
  convolution.high[0] = read.end - x.end;
  if (convolution.low[0] < 0 || convolution.high[0] < 0) return std::nullopt;
  return convolution;
}

}  // namespace

std::vector<ConvolutionSlab> convolution_slabs(CudnnProblem::Pass pass, const Convolution& convolution,
                                               const Array& x, const Array& y, std::int64_t bytes,
                                               std::int64_t most) {
  const std::vector<ConvolutionSlab> whole = {{convolution, x, y}};
  if (bytes <= most) return whole;
  const bool makes_x = pass == CudnnProblem::Pass::kData;
  const std::int64_t samples = x.shape()[0], made = (makes_x ? x : y).shape()[1],
                     parts = (bytes / samples + most - 1) / most, step = (made + parts - 1) / parts,
                     low = convolution.low.rank() == 0 ? 0 : convolution.low[0];
  std::vector<ConvolutionSlab> slabs;
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    for (std::int64_t begin = 0; begin < made; begin += step) {
      const Rows own{begin, std::min(begin + step, made)};
      const Rows of_x = makes_x ? own : within(read_by(convolution.window, low, own), x.shape()[1]),
                 of_y = makes_x ? within(reading(convolution.window, low, own), y.shape()[1]) : own;
      const std::optional<Convolution> part = between(convolution, of_x, of_y);
      if (!part) return whole;
      slabs.push_back({*part, rows_of(x, sample, of_x), rows_of(y, sample, of_y)});
      if (pass != CudnnProblem::Pass::kWeight && !aligned(makes_x ? slabs.back().x : slabs.back().y))
        return whole;
    }
  }
  return slabs;
}

}  // namespace jigsaw::inline kernels::cuda
