#include "kernels/resampling.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "kernels/field_extents.h"
#include "kernels/front/resampling_kernels.h"

namespace jigsaw::inline kernels {

namespace {

/// ⌊a/b⌋ for b > 0.
std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}

/// The tap of output point o in coordinates of the whole input. Rational arithmetic: no rounding decides
/// which points are read.
ResamplingTap tap_of(const Resampling& resampling, int dim, std::int64_t o) {
  const std::int64_t in = resampling.input[dim], out = resampling.output[dim];
  if (is_nearest(resampling.interpolation)) {
    const bool exact = resampling.interpolation == Interpolation::kNearestExact;
    const std::int64_t nearest = exact ? (2 * o + 1) * in / (2 * out) : o * in / out;
    return {nearest, nearest, 0.0};
  }
  const std::int64_t position = (2 * o + 1) * in - out, unit = 2 * out;  // in units of 1/(2·out)
  ResamplingTap tap;
  tap.low = floor_divide(position, unit);
  tap.high = tap.low + 1;
  tap.share = static_cast<double>(position - tap.low * unit) / static_cast<double>(unit);
  if (tap.share == 0.0) tap.high = tap.low;
  if (resampling.clamped[static_cast<std::size_t>(dim)]) {
    tap.low = std::clamp<std::int64_t>(tap.low, 0, in - 1);
    tap.high = std::clamp<std::int64_t>(tap.high, 0, in - 1);
  }
  return tap;
}

void require_regions(std::string_view kernel, const Resampling& resampling, int rank) {
  bool fits = rank >= 1 && rank <= 3;
  for (const Shape* each : {&resampling.input, &resampling.output, &resampling.source_extent,
                            &resampling.target.begin, &resampling.target.extent}) {
    fits = fits && each->rank() == rank;
  }
  for (int dim = 0; fits && dim < rank; ++dim) {
    fits = resampling.input[dim] > 0 && resampling.output[dim] > 0 && resampling.target.begin[dim] >= 0 &&
           resampling.target.end(dim) <= resampling.output[dim];
  }
  if (!fits) {
    throw ShapeError(concat(kernel, ": from ", resampling.input, " to ", resampling.output, " points, ",
                            resampling.source_extent, " of them here, target ", resampling.target, ", of ",
                            rank, " spatial dims"));
  }
  if (resampling.target.empty()) return;
  for (int dim = 0; dim < rank; ++dim) {
    const ReadRange reads =
        resampling_reads(resampling, dim, resampling.target.begin[dim], resampling.target.end(dim));
    if (reads.begin < resampling.source_first(dim) || reads.end > resampling.source_end(dim)) {
      throw ShapeError(concat(kernel, ": the target ", resampling.target, " reads points ", reads.begin,
                              " to ", reads.end, " of dim ", dim, ", those here are ",
                              resampling.source_first(dim), " to ", resampling.source_end(dim)));
    }
  }
}

/// Operations for each point that is made.
double flops_of(const Resampling& resampling, const Array& y) {
  const int corners = is_nearest(resampling.interpolation) ? 0 : 1 << resampling.target.extent.rank();
  return 2.0 * corners * static_cast<double>(y.count());
}

}  // namespace

ReadRange resampling_reads(const Resampling& resampling, int dim, std::int64_t begin, std::int64_t end) {
  if (begin >= end) return {};
  return {tap_of(resampling, dim, begin).low, tap_of(resampling, dim, end - 1).high + 1};
}

std::vector<ResamplingTap> resampling_taps(const Resampling& resampling, int dim) {
  std::vector<ResamplingTap> taps;
  for (std::int64_t o = resampling.target.begin[dim]; o < resampling.target.end(dim); ++o) {
    taps.push_back(tap_of(resampling, dim, o));
    taps.back().low -= resampling.source_first(dim);
    taps.back().high -= resampling.source_first(dim);
  }
  return taps;
}

namespace {

/// Shape of the result for x, once they are seen to fit.
Shape require_source(const Resampling& resampling, const Array& x) {
  constexpr std::string_view kKernel = "resample_forward";
  require_regions(kKernel, resampling, x.rank() - 2);
  require_same_shape(kKernel, x.shape(),
                     field_shape(x.shape()[0], resampling.source_extent, x.shape().back()));
  return field_shape(x.shape()[0], resampling.target.extent, x.shape().back());
}

}  // namespace

void resample_forward_into(Context& context, const Resampling& resampling, const Array& x, Array& y) {
  require_same_shape("resample_forward", y.shape(), require_source(resampling, x));
  require_same_type("resample_forward", x, y);
  count_work(context, flops_of(resampling, y), {&x, &y});
  if (y.count() == 0) return;
  launch(context, x.dtype(), &ResamplingKernels::forward, resampling, x, y);
}

Array resample_forward(Context& context, const Resampling& resampling, const Array& x) {
  Array y(context, require_source(resampling, x), x.dtype());
  resample_forward_into(context, resampling, x, y);
  return y;
}

Array resample_backward(Context& context, const Resampling& resampling, const Array& dy) {
  require_regions("resample_backward", resampling, dy.rank() - 2);
  require_same_shape("resample_backward", dy.shape(),
                     field_shape(dy.shape()[0], resampling.target.extent, dy.shape().back()));
  Array dx(context, field_shape(dy.shape()[0], resampling.source_extent, dy.shape().back()), dy.dtype());
  count_work(context, flops_of(resampling, dy), {&dy, &dx});
  if (dx.count() == 0) return dx;
  launch(context, dy.dtype(), &ResamplingKernels::backward, resampling, dy, dx);
  return dx;
}

// What a backend lacks.
void ResamplingKernels::forward(Context&, const Resampling&, const Array&, Array&) const {
  missing_kernel("resample_forward");
}
void ResamplingKernels::backward(Context&, const Resampling&, const Array&, Array&) const {
  missing_kernel("resample_backward");
}

}  // namespace jigsaw::inline kernels
