#include "grids/regrid.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "grids/degrees.h"

namespace jigsaw::inline grids {

namespace {

double sine(double degrees) {
  return std::sin(degrees * std::numbers::pi / 180.0);
}

}  // namespace

double SourceAxis::turns(std::int64_t i) const {
  return circular_ ? kCircle * std::floor(static_cast<double>(i) / static_cast<double>(size())) : 0.0;
}

SourceAxis SourceAxis::latitude(const std::vector<double>& there) {
  SourceAxis axis;
  if (there.empty()) throw DataError("the latitude axis has no points");
  axis.latitude_ = true;
  axis.centres_ = there;
  std::ranges::sort(axis.centres_);
  axis.limits_ = make_geographic_grid(axis.centres_, {0}).axes[0].bounds;
  return axis;
}

void SourceAxis::end_at_poles() {
  constexpr double kPole = 90, kSteps = 1.5;
  if (centres_.size() < 2) return;
  if (kPole - centres_.back() <= kSteps * (centres_.back() - centres_[centres_.size() - 2]))
    limits_.back() = kPole;
  if (centres_.front() + kPole <= kSteps * (centres_[1] - centres_.front())) limits_.front() = -kPole;
}

SourceAxis SourceAxis::longitude(const std::vector<double>& there) {
  SourceAxis axis;
  if (there.empty()) throw DataError("the longitude axis has no points");
  std::vector<double>& centres = axis.centres_;
  for (const double longitude : there) centres.push_back(on_circle(longitude));
  std::ranges::sort(centres);
  if (centres.size() > 1 && centres.front() + kCircle - centres.back() < kSameDegrees) centres.pop_back();
  const auto twice = [](double a, double b) { return b - a < kSameDegrees; };
  centres.erase(std::unique(centres.begin(), centres.end(), twice), centres.end());
  std::size_t begin = 0;
  double gap = centres.front() + kCircle - centres.back();
  for (std::size_t i = 1; i < centres.size(); ++i) {
    if (centres[i] - centres[i - 1] <= gap + kSameDegrees) continue;
    gap = centres[i] - centres[i - 1];
    begin = i;
  }
  std::rotate(centres.begin(), centres.begin() + static_cast<std::ptrdiff_t>(begin), centres.end());
  for (double& centre : centres) centre += centre < centres.front() ? kCircle : 0.0;
  const Grid grid = make_geographic_grid({0}, centres);
  axis.limits_ = grid.axes[1].bounds;
  axis.circular_ = grid.periodic;
  return axis;
}

std::int64_t SourceAxis::before(double coordinate) const {
  const double turn = circular_ ? std::floor((coordinate - centres_[0]) / kCircle) : 0.0;
  const auto above = std::ranges::upper_bound(centres_, coordinate - kCircle * turn);
  return (above - centres_.begin()) - 1 + static_cast<std::int64_t>(turn) * size();
}

std::vector<double> SourceAxis::points() const {
  std::vector<double> points;
  for (std::int64_t i = -origin(); i < size() + origin(); ++i) points.push_back(centre(i));
  return points;
}

double SourceAxis::here(double coordinate) const {
  if (latitude_) return coordinate;
  if (circular_) return centres_.front() + on_circle(coordinate - centres_.front());
  const double middle = 0.5 * (centres_.front() + centres_.back());
  return coordinate + kCircle * std::round((middle - coordinate) / kCircle);
}

std::optional<SourceAxis::Between> SourceAxis::between(double coordinate, Regrid method) const {
  const std::int64_t i = before(coordinate);
  if (!has(i) || !has(i + 1)) {
    const std::int64_t end = std::clamp<std::int64_t>(i, 0, size() - 1);
    // A pole belongs to the row around it.
    const bool within = coordinate > low(end) - kSameDegrees && coordinate < high(end) + kSameDegrees;
    return within ? std::optional(Between{end, 0}) : std::nullopt;
  }
  const double below = centre(i), above = centre(i + 1);
  if (coordinate - below < kSameDegrees) return Between{i, 0};
  if (above - coordinate < kSameDegrees) return Between{i + 1, 0};
  const double part = (coordinate - below) / (above - below);
  // In the middle rounding of coordinates does not decide.
  if (method == Regrid::kNearest)
    return Between{coordinate - below < above - coordinate + kSameDegrees ? i : i + 1, 0};
  return Between{i, part};
}

bool AxisWeights::add_between(const SourceAxis& source, double coordinate, Regrid method) {
  const std::optional<SourceAxis::Between> between = source.between(coordinate, method);
  if (!between) return false;
  means_.push_back({between->first, between->part > 0 ? 2 : 1, weights_.size()});
  weights_.push_back(1 - between->part);
  if (between->part > 0) weights_.push_back(between->part);
  return true;
}

bool AxisWeights::add_cells(const SourceAxis& source, double low, double high) {
  const auto measure = [&](double from, double to) {
    return source.is_latitude() ? sine(to) - sine(from) : to - from;
  };
  std::int64_t i = source.before(low);
  while (source.has(i) && source.low(i) > low) --i;
  i = source.circular() ? i : std::max<std::int64_t>(i, 0);
  while (source.has(i) && source.high(i) <= low) ++i;
  const std::size_t at = weights_.size();
  const std::int64_t first = i;
  double sum = 0;
  for (; source.has(i) && source.low(i) < high; ++i) {
    weights_.push_back(measure(std::max(low, source.low(i)), std::min(high, source.high(i))));
    sum += weights_.back();
  }
  if (!(sum >= 0.5 * measure(low, high))) return false;
  for (std::size_t k = at; k < weights_.size(); ++k) weights_[k] /= sum;
  means_.push_back({first, i - first, at});
  return true;
}

std::optional<AxisWeights> AxisWeights::make(const GridAxis& wanted, const SourceAxis& source,
                                             Regrid method) {
  AxisWeights result;
  // By how many turns the grid counts otherwise than the file, of which an area has no second chance.
  const double middle = wanted.coordinates[wanted.coordinates.size() / 2];
  const double turn = source.circular() ? 0.0 : source.here(middle) - middle;
  for (std::size_t i = 0; i < wanted.coordinates.size(); ++i) {
    const auto [low, high] = std::minmax({wanted.bounds[i] + turn, wanted.bounds[i + 1] + turn});
    const bool there = method == Regrid::kConservative
                           ? result.add_cells(source, low, high)
                           : result.add_between(source, wanted.coordinates[i] + turn, method);
    if (!there) return std::nullopt;
  }
  std::int64_t first = result.means_[0].first, end = first;
  for (const Mean& mean : result.means_) {
    first = std::min(first, mean.first);
    end = std::max(end, mean.first + mean.count);
  }
  for (Mean& mean : result.means_) mean.first -= first;
  for (std::int64_t i = first; i < end; ++i) result.points_.push_back(source.centre(i));
  return result;
}

AxisInterval AxisWeights::needed(std::int64_t begin, std::int64_t count) const {
  if (count == 0) return {};
  // The grid's points follow one another.
  const Mean &one = means_[static_cast<std::size_t>(begin)],
             &other = means_[static_cast<std::size_t>(begin + count - 1)];
  const std::int64_t first = std::min(one.first, other.first);
  return {first, std::max(one.first + one.count, other.first + other.count) - first};
}

double mean_of(double sum, double absent) {
  constexpr double kHalf = 0.5 + 1e-3;  // with what rounding of coordinates makes of it
  if (absent == 0) return sum;
  return absent > kHalf ? std::nan("") : sum / (1 - absent);
}

template <typename T>
void regrid(const AxisWeights& down, const AxisInterval& rows, const AxisWeights& along,
            const AxisInterval& columns, std::span<const T> there, std::span<T> out) {
  const AxisInterval read_rows = down.needed(rows.begin, rows.count),
                     read_columns = along.needed(columns.begin, columns.count);
  const auto width = static_cast<std::size_t>(columns.count);
  require(std::ssize(there) == read_rows.count * read_columns.count &&
              std::ssize(out) == rows.count * columns.count,
          "a piece that is brought to another grid has the points that it needs");
  // Along each row that is read, then down: sums, and the weight of what is missing.
  std::vector<double> sums(static_cast<std::size_t>(read_rows.count) * width), missing(sums.size());
  for (std::int64_t i = 0; i < read_rows.count; ++i) {
    const T* const row = &there[static_cast<std::size_t>(i * read_columns.count)];
    for (std::int64_t j = 0; j < columns.count; ++j) {
      const std::span<const double> weights = along.weights(columns.begin + j);
      const T* const values = row + (along.first(columns.begin + j) - read_columns.begin);
      double sum = 0, absent = 0;
      for (std::size_t k = 0; k < weights.size(); ++k) {
        const auto value = static_cast<double>(values[k]);
        const bool is_there = value == value;
        sum += is_there ? weights[k] * value : 0.0;
        absent += is_there ? 0.0 : weights[k];
      }
      const std::size_t at = static_cast<std::size_t>(i) * width + static_cast<std::size_t>(j);
      sums[at] = sum;
      missing[at] = absent;
    }
  }
  std::vector<double> sum(width), absent(width);
  for (std::int64_t i = 0; i < rows.count; ++i) {
    std::ranges::fill(sum, 0.0);
    std::ranges::fill(absent, 0.0);
    const std::span<const double> weights = down.weights(rows.begin + i);
    const std::int64_t first = down.first(rows.begin + i) - read_rows.begin;
    for (std::size_t k = 0; k < weights.size(); ++k) {
      const std::size_t at = (static_cast<std::size_t>(first) + k) * width;
      for (std::size_t j = 0; j < width; ++j) {
        sum[j] += weights[k] * sums[at + j];
        absent[j] += weights[k] * missing[at + j];
      }
    }
    for (std::size_t j = 0; j < width; ++j) {
      out[static_cast<std::size_t>(i) * width + j] = static_cast<T>(mean_of(sum[j], absent[j]));
    }
  }
}

template void regrid<float>(const AxisWeights&, const AxisInterval&, const AxisWeights&, const AxisInterval&,
                            std::span<const float>, std::span<float>);
template void regrid<double>(const AxisWeights&, const AxisInterval&, const AxisWeights&, const AxisInterval&,
                             std::span<const double>, std::span<double>);

}  // namespace jigsaw::inline grids
