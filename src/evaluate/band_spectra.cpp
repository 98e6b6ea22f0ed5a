#include "evaluate/band_spectra.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "array/transfer.h"
#include "parallel/redistribute.h"
#include "task/loss.h"

namespace jigsaw::inline evaluate {

namespace {

constexpr std::int64_t kParts = 2;  ///< of a point: real and imaginary

/// The layout in which no rank cuts an axis: what cut it cuts the next one, or along a line the channels.
Layout with_whole_lines(const Mesh& mesh, Layout layout, int dim, int axes) {
  const int other = axes > 1 ? 1 + dim % axes : dim + 1;
  for (const int from : {dim, other})
    for (const int axis : layout.cutting(mesh.shape(), from))
      layout.placements[axis] = Placement::shard(other);
  return layout;
}

/// Transforms all lines along a dim of values [extents, kParts], which are whole there.
void transform_lines(const Fourier& fourier, const Shape& extents, int dim, std::vector<double>& values) {
  const std::int64_t length = extents[dim], step = extents.count(dim + 1, extents.rank());
  std::vector<Fourier::Complex> from(static_cast<std::size_t>(length)), to(from.size());
  for (std::int64_t line = 0; line < extents.count() / length; ++line) {
    const std::int64_t first = line / step * step * length + line % step;
    const auto at = [&](std::int64_t i) { return static_cast<std::size_t>((first + i * step) * kParts); };
    for (std::int64_t i = 0; i < length; ++i)
      from[static_cast<std::size_t>(i)] = {values[at(i)], values[at(i) + 1]};
    fourier.transform(from, to);
    for (std::int64_t i = 0; i < length; ++i) {
      values[at(i)] = to[static_cast<std::size_t>(i)].real();
      values[at(i) + 1] = to[static_cast<std::size_t>(i)].imag();
    }
  }
}

}  // namespace

BandSpectra::BandSpectra(const Shape& space) {
  constexpr double kTurn = 2 * std::numbers::pi;
  std::int64_t longest = 1;
  for (const std::int64_t extent : space) {
    axes_.emplace_back(static_cast<std::size_t>(extent));
    std::vector<double>& squares = squares_.emplace_back();
    for (std::int64_t n = 0; n < extent; ++n)
      squares.push_back(
          std::pow(kTurn * static_cast<double>(std::min(n, extent - n)) / static_cast<double>(extent), 2));
    longest = std::max(longest, extent);
  }
  constexpr double kBeyond = 1e-6;  // so that a wave at a limit is in the band below
  const double first = kTurn / static_cast<double>(longest),
               last = std::numbers::pi * std::sqrt(static_cast<double>(space.rank())) + kBeyond;
  for (std::size_t i = 1; i <= kBands; ++i)
    limits_[i] = first * std::pow(last / first, static_cast<double>(i) / static_cast<double>(kBands));
}

/// Of the square of a wave number; none is beyond the last limit but by rounding.
std::size_t BandSpectra::band_of(double square) const {
  std::size_t band = 0;
  while (band + 1 < kBands && square >= limits_[band + 1] * limits_[band + 1]) ++band;
  return band;
}

std::vector<double> BandSpectra::squares(const Rank& rank, const Layout& layout,
                                         const std::vector<double>& field) const {
  const int axes = static_cast<int>(axes_.size());
  std::vector<double> values;
  values.reserve(field.size() * kParts);
  for (const double value : field) values.insert(values.end(), {value, 0});
  Layout held = layout;
  held.global.append(kParts);
  for (int axis = 0; axis < axes; ++axis) {
    const Layout whole = with_whole_lines(rank.mesh, held, 1 + axis, axes);
    const Array piece = constant(rank.context, rank.box(held).extent, DType::kFloat64, values);
    values = {};
    values = download_values(rank.context, redistribute(rank, {piece, held}, whole).piece);
    held = whole;
    if (values.empty()) continue;
    const Shape points = rank.box({layout.global, held.placements}).extent;
    transform_lines(axes_[static_cast<std::size_t>(axis)], points, 1 + axis, values);
  }
  const Box box = rank.box(held);
  const std::int64_t channels = layout.global.back();
  double points = 1;
  for (const std::vector<double>& squares : squares_) points *= static_cast<double>(squares.size());
  std::vector<double> sums(static_cast<std::size_t>(layout.global[0] * channels) * kBands, 0.0);
  for (std::size_t i = 0; i < values.size(); i += kParts) {
    std::int64_t rest = static_cast<std::int64_t>(i) / kParts;
    const std::int64_t channel = box.begin[1 + axes] + rest % box.extent[1 + axes];
    rest /= box.extent[1 + axes];
    double square = 0;
    for (int axis = axes - 1; axis >= 0; --axis) {
      square += squares_[static_cast<std::size_t>(axis)]
                        [static_cast<std::size_t>(box.begin[1 + axis] + rest % box.extent[1 + axis])];
      rest /= box.extent[1 + axis];
    }
    sums[static_cast<std::size_t>((box.begin[0] + rest) * channels + channel) * kBands + band_of(square)] +=
        (values[i] * values[i] + values[i + 1] * values[i + 1]) / (points * points);
  }
  sum_over(rank, rank.mesh.all_axes(), sums);
  return sums;
}

std::vector<BandSpectra::Powers> BandSpectra::of(const Rank& rank, const Layout& layout,
                                                 const std::vector<double>& error,
                                                 const std::vector<double>& truth) const {
  const std::vector<double> of_error = squares(rank, layout, error), of_truth = squares(rank, layout, truth);
  std::vector<Powers> powers(of_error.size() / kBands);
  for (std::size_t i = 0; i < powers.size(); ++i) {
    std::copy_n(of_error.begin() + static_cast<std::ptrdiff_t>(i * kBands), kBands, powers[i].error.begin());
    std::copy_n(of_truth.begin() + static_cast<std::ptrdiff_t>(i * kBands), kBands, powers[i].truth.begin());
  }
  return powers;
}

}  // namespace jigsaw::inline evaluate
