#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "array/grid.h"
#include "grids/regrid_options.h"

namespace jigsaw::inline grids {

/// A run of neighbouring points of an axis.
struct AxisInterval {
  std::int64_t begin = 0, count = 0;
};

/// An axis of a file: points ascending without jumps, with the limits of their cells. Round a circle of n
/// points point i + n is point i a turn later.
class SourceAxis {
 public:
  static SourceAxis latitude(const std::vector<double>& there);
  /// Longitudes in any order; an area begins behind the largest gap of the circle.
  static SourceAxis longitude(const std::vector<double>& there);

  /// Latitudes: the outermost cells end at a pole that is no further than a step and a half from their
  /// centres.
  void end_at_poles();

  bool is_latitude() const { return latitude_; }
  bool circular() const { return circular_; }
  std::int64_t size() const { return std::ssize(centres_); }
  bool has(std::int64_t i) const { return circular_ || (i >= 0 && i < size()); }
  double centre(std::int64_t i) const { return centres_[index(i)] + turns(i); }
  double low(std::int64_t i) const { return limits_[index(i)] + turns(i); }
  double high(std::int64_t i) const { return limits_[index(i) + 1] + turns(i); }
  /// The last point at or before a coordinate; −1 before all others.
  std::int64_t before(double coordinate) const;
  /// The same longitude within half a turn of an area's middle, or the turn from the first point of a circle
  /// on; latitudes stay as they are.
  double here(double coordinate) const;
  /// All points, of a circle also a turn before and behind it; the number of point 0 among them.
  std::vector<double> points() const;
  std::int64_t origin() const { return circular_ ? size() : 0; }

  /// A value of (1 − part) of point `first` and `part` of the next, of which nothing is read where part is 0.
  struct Between {
    std::int64_t first = 0;
    double part = 0;
  };
  /// Nothing beyond the last point by more than half a step.
  std::optional<Between> between(double coordinate, Regrid method) const;
  bool operator==(const SourceAxis&) const = default;

 private:
  double turns(std::int64_t i) const;
  std::size_t index(std::int64_t i) const {
    return static_cast<std::size_t>(circular_ ? (i % size() + size()) % size() : i);
  }

  std::vector<double> centres_, limits_;
  bool circular_ = false, latitude_ = false;
};

/// An axis of a grid as weighted means over neighbouring points of the same axis of a file.
class AxisWeights {
 public:
  /// @param wanted  an axis of a geographic grid, without jumps. Nothing where the file does not reach so
  /// far: beyond its last point by more than half a step, or of cells by more than half of one.
  static std::optional<AxisWeights> make(const GridAxis& wanted, const SourceAxis& source, Regrid method);

  /// The file's points that the grid reads, ascending; round a circle some of them may come twice.
  const std::vector<double>& points() const { return points_; }
  /// Which of them points [begin, begin + count) of the grid read.
  AxisInterval needed(std::int64_t begin, std::int64_t count) const;

  /// Of a point of the grid: the first of points() that it reads, and the weights of that and the following
  /// ones, whose sum is 1.
  std::int64_t first(std::int64_t point) const { return means_[static_cast<std::size_t>(point)].first; }
  std::span<const double> weights(std::int64_t point) const {
    const Mean& mean = means_[static_cast<std::size_t>(point)];
    return std::span(weights_).subspan(mean.at, static_cast<std::size_t>(mean.count));
  }

 private:
  struct Mean {
    std::int64_t first = 0, count = 0;
    std::size_t at = 0;  ///< in weights_
  };

  bool add_between(const SourceAxis& source, double coordinate, Regrid method);
  bool add_cells(const SourceAxis& source, double low, double high);

  std::vector<double> points_, weights_;
  std::vector<Mean> means_;
};

/// Values at `rows` × `columns` of a grid out of those of a file at the points that these need, row by row. A
/// missing value (NaN) has no weight; where more than half of the weight lacks the result is missing. Each
/// result depends on its own points alone, and not on which others are formed with it.
template <typename T>
void regrid(const AxisWeights& down, const AxisInterval& rows, const AxisWeights& along,
            const AxisInterval& columns, std::span<const T> there, std::span<T> out);

/// The mean of values that are there, of all weights 1: missing where more than half of the weight lacks.
/// @param absent  the weight of those that are missing.
double mean_of(double sum, double absent);

}  // namespace jigsaw::inline grids
