#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "samples/point_weights.h"
#include "samples/regrid.h"

namespace jigsaw::inline samples {

/// Where the points of a file are whose fields are brought to other points.
class SourcePoints {
 public:
  SourcePoints() = default;
  SourcePoints(const SourcePoints&) = delete;
  SourcePoints& operator=(const SourcePoints&) = delete;
  virtual ~SourcePoints() = default;

  /// @param method  one of those that they have.
  virtual PointWeights weights(const TargetPoints& targets, Regrid method) const = 0;
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
/// points and rows.
class RowPoints : public SourcePoints {
 public:
  /// Null where the points are in no such rows.
  static std::shared_ptr<const RowPoints> find(std::span<const double> latitudes,
                                               std::span<const double> longitudes);
  PointWeights weights(const TargetPoints& targets, Regrid method) const override;
  std::int64_t rows() const { return std::ssize(rows_); }

 private:
  struct Row {
    double latitude = 0;
    std::int64_t begin = 0, count = 0;  ///< in the list
    double first = 0, step = 0;         ///< longitudes
    bool circular = false;
  };
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

/// Points anywhere: kNearest on the sphere, and kInverseDistance of the four nearest, by great circles. A
/// target has no value where the nearest point is further from it than from the eighth of its own neighbours.
class ScatteredPoints : public SourcePoints {
 public:
  /// @param latitudes, longitudes  in degrees, row after row; NaN where a point has no place.
  /// @param columns  0: the points are a list.
  ScatteredPoints(std::vector<double> latitudes, std::vector<double> longitudes, std::int64_t columns);
  PointWeights weights(const TargetPoints& targets, Regrid method) const override;

 private:
  class Near;

  std::vector<double> latitudes_, longitudes_;
  std::int64_t columns_;
};

}  // namespace jigsaw::inline samples
