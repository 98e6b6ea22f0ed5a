#pragma once
#include <cstdint>
#include <vector>

#include "array/box.h"
#include "images/augmentation.h"

namespace jigsaw::inline predict {

/// Brings numbers of an image from the points of the common spacing (data.spacing) back to those of its file:
/// point i of the file lies at i / step between the common ones, whose numbers count multilinearly; beyond
/// the last one its own count. Neighbours that are NaN do not count; where all are it is NaN.
///
/// Rows (points of the first dim) are taken as they become whole, and those of the file given as soon as the
/// common rows around them are there. A rank makes those columns of the file (second dim) whose neighbour
/// below is among its own common columns (columns_of()), for which it holds one column beyond them. Every
/// number is a function of those at the common points alone, hence equal for all numbers of ranks.
class OwnPoints {
 public:
  /// @param common  extents of the image at the common spacing. @param own  in its file. @param step  from
  /// one common point to the next, in points of the file, of each dim.
  OwnPoints(const Shape& common, const Shape& own, std::vector<double> step);

  /// What `rank` of `ranks` gives of the file's points for the common rows `rows.begin[0]` … `rows.end(0)` −
  /// 1, when it had all before them; it may be empty.
  Box box(const Box& rows, int ranks, int rank) const;
  /// Takes the next common rows of this rank, [rows, numbers] with kHalo columns beyond its own, and gives
  /// [box(rows, ranks, rank), numbers].
  std::vector<double> take(const Box& rows, const std::vector<double>& values, std::int64_t numbers,
                           int ranks, int rank);

  static constexpr std::int64_t kHalo = 1;

 private:
  double place(int dim, std::int64_t own) const;
  /// How many points of the file along a dim have their neighbours below, or above, before a common point.
  std::int64_t points_below(int dim, std::int64_t common) const;
  std::int64_t points_whole(int dim, std::int64_t common) const;

  Shape common_, own_;
  std::vector<double> step_;
  Interpolation between_;
  Box held_;  ///< common points of this rank that are still needed
  std::vector<double> values_;
};

}  // namespace jigsaw::inline predict
