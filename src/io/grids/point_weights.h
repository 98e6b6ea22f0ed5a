#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "array/box.h"

namespace jigsaw::inline grids {

/// Points anywhere, in degrees, and what belongs to them where they are those of latitudes and longitudes.
struct TargetPoints {
  struct Cell {
    double south = 0, north = 0, west = 0, east = 0;
  };
  std::vector<double> latitude, longitude;  ///< NaN where one has no place, and hence no value
  std::vector<Cell> cells;                  ///< none on a projection
};

/// Values at points as weighted means of a file's points, which are counted row after row. A missing value
/// (NaN) has no weight; where more than half of the weight lacks the result is missing. Each result depends
/// on its own points alone.
class PointWeights {
 public:
  /// @param columns  of the file; 0: its points are a list.
  explicit PointWeights(std::int64_t columns) : columns_(columns) {}

  /// Of the next target: another point of the file and its weight.
  void add(std::int64_t point, double weight);
  /// The target is complete. Weights are divided by their sum; without any it has no value.
  void end_target();
  /// The target lies where the file does not reach.
  void end_beyond();
  /// Before what follows.
  void finish();

  /// The first target that the file does not reach; nothing where it has all.
  std::optional<std::size_t> beyond() const { return beyond_; }
  /// Rows and columns of the file that are read, one box behind the other; of a list all are in row 0.
  const std::vector<Box>& boxes() const { return boxes_; }
  std::int64_t bytes() const;
  /// How many values they hold.
  std::int64_t read() const { return read_; }
  /// What a target is made of.
  struct Term {
    std::int64_t target = 0, row = 0, column = 0;
    double weight = 0;
  };
  /// All of them, of a file of rows and columns; after finish().
  std::vector<Term> terms() const;
  /// @param there  values of boxes().
  template <typename T>
  void apply(std::span<const T> there, std::span<T> out) const;

 private:
  void find_rectangle();
  void find_intervals();

  std::int64_t columns_ = 0, read_ = 0;
  std::vector<std::int64_t> points_;   ///< of the file; none after finish()
  std::vector<std::uint32_t> places_;  ///< and theirs among the values that are read
  std::vector<double> weights_;
  std::vector<std::size_t> ends_;  ///< of each target in these
  std::vector<Box> boxes_;
  std::optional<std::size_t> beyond_;
};

}  // namespace jigsaw::inline grids
