#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "array/box.h"
#include "comm/communicator.h"
#include "fields/file_set.h"

namespace jigsaw::inline samples {

/// How much each point of a grid counts in means over space: as its row does, or by the area of its cell. 1
/// in the mean over the grid. Copies share what they have read. May be asked from several threads.
class CellWeights {
 public:
  /// Areas of rows and columns `plane` [H, W], row by row, 0 where there is none. @throws DataError
  using ReadAreas = std::function<void(const Box& plane, std::span<double> out)>;
  using Values = std::shared_ptr<const std::vector<double>>;

  /// @param rows  the weight of each row, mean 1.
  explicit CellWeights(std::vector<double> rows) : rows_(std::move(rows)) {}
  /// @param rows  of the grid.
  /// @param mean  of the areas over all points of the grid, above 0.
  CellWeights(std::int64_t rows, double mean, ReadAreas read);

  /// The same points, all with weight 1.
  CellWeights alike() const { return CellWeights(std::vector<double>(rows_.size(), 1.0)); }
  /// Whether all points of a row count as much.
  bool by_rows() const { return points_ == nullptr; }
  /// The weights of rows; where points have their own, ones.
  const std::vector<double>& rows() const { return rows_; }
  /// Weights of the points `plane` [H, W], row by row. Those of the points' own that were asked for last are
  /// kept; others are read. @throws DataError
  Values of(const Box& plane) const;

 private:
  struct Points;

  std::vector<double> rows_;
  std::shared_ptr<Points> points_;
};

/// What data.cell_area says: "": rows of a geographic grid by their area, points of others alike; "auto": the
/// same of a geographic grid, and of others cell_areas(); else a variable of the files, selected by
/// select_cell_area(). Of points that stand twice (FileSet::GoesRound::repeated) each has half the area. The
/// mean over the grid is summed up in an order that does not depend on the number of ranks, each of which
/// reads its share of the rows. Collective: what throws on one rank throws on all.
///
/// @param files  live as long as the weights. @throws DataError  where areas are negative or infinite, or
/// none is above 0.
CellWeights cell_weights(FileSet& files, const std::string& cell_area, Communicator& communicator);

/// The variable that data.cell_area names; nothing of "" and "auto".
std::optional<Field> variable_of_areas(const std::string& cell_area);

/// Makes the variable that data.cell_area names readable, if it does name one. @throws DataError  where it is
/// not in the files, or on another grid than the fields that were selected.
void select_cell_area(FileSet& files, const std::string& cell_area);

}  // namespace jigsaw::inline samples
