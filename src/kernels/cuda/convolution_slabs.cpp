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

/// How many of `count` things a part has, of as few parts as hold `most` of them each, all about as large.
std::int64_t of_part(std::int64_t count, std::int64_t most) {
  const std::int64_t parts = (count + most - 1) / most;
  return (count + parts - 1) / parts;
}

Array samples_of(const Array& field, std::int64_t begin, std::int64_t end) {
  Shape shape = field.shape();
  const std::int64_t sample = shape.count(1, shape.rank());
  shape[0] = end - begin;
  return field.slice(begin * sample, shape);
}

}  // namespace

std::vector<ConvolutionSlab> convolution_slabs(CudnnProblem::Pass pass, const Convolution& convolution,
                                               const Array& x, const Array& y, const CopiedBytes& copied,
                                               const ConvolutionSlabs& most) {
  std::vector<ConvolutionSlab> whole = {{convolution, x, y}};
  const auto fits = [&](std::int64_t bytes, std::int64_t elements) {
    return bytes <= most.most_bytes && elements <= most.most_elements;
  };
  if (fits(copied.of_x + copied.of_y, std::max(x.count(), y.count()))) return whole;
  const bool makes_x = pass == CudnnProblem::Pass::kData, makes = pass != CudnnProblem::Pass::kWeight;
  const std::int64_t samples = x.shape()[0];
  std::vector<ConvolutionSlab> slabs;
  const auto add = [&](const Convolution& part, const Array& part_x, const Array& part_y) {
    slabs.push_back({part, part_x, part_y});
    return !makes || aligned(makes_x ? part_x : part_y);
  };
  const std::int64_t bytes = (copied.of_x + copied.of_y) / samples,
                     elements = std::max(x.count(), y.count()) / samples;
  if (fits(bytes, elements)) {
    const std::int64_t step = of_part(
        samples, std::min(most.most_bytes / std::max<std::int64_t>(bytes, 1), most.most_elements / elements));
    for (std::int64_t begin = 0; begin < samples; begin += step) {
      const std::int64_t end = std::min(begin + step, samples);
      if (!add(convolution, samples_of(x, begin, end), samples_of(y, begin, end))) return whole;
    }
    return slabs;
  }
  const Window& window = convolution.window;
  const std::int64_t rows_x = x.shape()[1], rows_y = y.shape()[1], made = makes_x ? rows_x : rows_y,
                     low = convolution.low.rank() == 0 ? 0 : convolution.low[0];
  // With the rows that two slabs read among them.
  const auto rows_fit = [&](std::int64_t rows) {
    const std::int64_t others = makes_x ? (rows + window.reach(0) - 2) / window.stride[0] + 1
                                        : (rows - 1) * window.stride[0] + window.reach(0),
                       of_x = makes_x ? rows : std::min(others, rows_x),
                       of_y = makes_x ? std::min(others, rows_y) : rows;
    return fits(of_x * (copied.of_x / (samples * rows_x)) + of_y * (copied.of_y / (samples * rows_y)),
                std::max(of_x * (x.count() / (samples * rows_x)), of_y * (y.count() / (samples * rows_y))));
  };
  std::int64_t fit = made;
  while (fit > 1 && !rows_fit(fit)) --fit;
  const std::int64_t step = of_part(made, fit);
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    for (std::int64_t begin = 0; begin < made; begin += step) {
      const Rows own{begin, std::min(begin + step, made)};
      const Rows of_x = makes_x ? own : within(read_by(window, low, own), rows_x),
                 of_y = makes_x ? within(reading(window, low, own), rows_y) : own;
      const std::optional<Convolution> part = between(convolution, of_x, of_y);
      if (!part || !add(*part, rows_of(x, sample, of_x), rows_of(y, sample, of_y))) return whole;
    }
  }
  return slabs;
}

}  // namespace jigsaw::inline kernels::cuda
