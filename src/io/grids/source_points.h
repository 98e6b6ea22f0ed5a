#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "grids/nearest_points.h"
#include "grids/point_weights.h"
#include "grids/regrid.h"

namespace jigsaw::inline grids {

/// Where the points of a file are whose fields are brought to other points.
class SourcePoints {
 public:
  SourcePoints() = default;
  SourcePoints(const SourcePoints&) = delete;
  SourcePoints& operator=(const SourcePoints&) = delete;
  virtual ~SourcePoints() = default;

  /// @param method  one of those that they have.
  virtual PointWeights weights(const TargetPoints& targets, Regrid method) const = 0;
  /// Whether targets may lie beyond (PointWeights::beyond); else what lies there has no value.
  virtual bool must_reach() const { return true; }
};

/// Rows and columns of latitudes and longitudes: kNearest and kLinear, along each axis. The weights are of
/// the points that SourceAxis::points() has of both.
class GridPoints : public SourcePoints {
 public:
  GridPoints(SourceAxis rows, SourceAxis columns) : rows_(std::move(rows)), columns_(std::move(columns)) {}
  PointWeights weights(const TargetPoints& targets, Regrid method) const override;

 private:
  SourceAxis rows_, columns_;
};

/// A list of points in rows of one latitude, each of equal steps of longitude but with a number of its own:
/// reduced Gaussian grids, HEALPix in the order of its rings. kNearest, kLinear: between rows, and along each
/// of them. kConservative: the mean over cells by area, where the cells of a row end midway to the next
/// points and rows. Rows round the globe end at the poles.
class RowPoints : public SourcePoints {
 public:
  /// Null where the points are in no such rows.
  static std::shared_ptr<const RowPoints> find(std::span<const double> latitudes,
                                               std::span<const double> longitudes);
  PointWeights weights(const TargetPoints& targets, Regrid method) const override;
  std::int64_t rows() const { return std::ssize(rows_); }
  bool round_the_globe() const;

 private:
  struct Row {
    double latitude = 0;
    std::int64_t begin = 0, count = 0;  ///< in the list; the first one is the westernmost
    double first = 0, step = 0;         ///< longitudes, eastward
    bool circular = false;
    int stride = 1;  ///< in the list; -1: the row stands from east to west

    /// The number in the list of point i, of a circle also of those a turn further on.
    std::int64_t point(std::int64_t i) const;
  };
  static std::optional<Row> row_of(std::span<const double> latitudes, std::span<const double> longitudes,
                                   std::size_t begin, std::size_t end);
  struct Along {
    std::int64_t point = 0, next = 0;  ///< in the list
    double part = 0;                   ///< of the next one
  };

  explicit RowPoints(std::vector<Row> rows);
  static std::optional<Along> along(const Row& row, double longitude, Regrid method);
  static double offset(const Row& row, double longitude);
  static double add_cells(const Row& row, double west, double east, double weight, PointWeights& weights);
  bool add_between(PointWeights& weights, double latitude, double longitude, Regrid method) const;
  bool add_mean(PointWeights& weights, const TargetPoints::Cell& cell) const;

  std::vector<Row> rows_;  ///< from south to north
  SourceAxis latitudes_;
};

/// Points anywhere: kNearest on the sphere, and kInverseDistance of the four nearest, by great circles; of
/// several at one place the first counts alone. A
/// target has no value where the nearest point is further from it than from those before and behind it in its
/// row and its column, or of a list than from the eighth of its neighbours and one and a half times as far as
/// these are usually.
class ScatteredPoints : public SourcePoints {
 public:
  /// @param latitudes, longitudes  in degrees, row after row; NaN where a point has no place.
  /// @param columns  0: the points are a list.
  ScatteredPoints(std::vector<double> latitudes, std::vector<double> longitudes, std::int64_t columns);
  PointWeights weights(const TargetPoints& targets, Regrid method) const override;
  bool must_reach() const override { return false; }

 private:
  class Near;

  std::size_t size() const { return latitudes_.size(); }
  UnitVector at(std::size_t point) const;
  double usual_reach() const;
  double reach_in_plane(std::size_t point) const;

  std::vector<double> latitudes_, longitudes_;
  std::int64_t columns_;
  double reach_ = 0;  ///< of all points of a list; chords, in radii of the sphere
};

}  // namespace jigsaw::inline grids
