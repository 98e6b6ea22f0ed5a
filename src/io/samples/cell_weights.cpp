#include "samples/cell_weights.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <mutex>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "grids/cell_areas.h"
#include "samples/shared_work.h"

namespace jigsaw::inline samples {

struct CellWeights::Points {
  double mean;
  ReadAreas read;
  std::mutex mutex;
  std::deque<std::pair<Box, Values>> kept;  ///< the one asked for last behind
};

CellWeights::CellWeights(std::int64_t rows, double mean, ReadAreas read)
    : rows_(static_cast<std::size_t>(rows), 1.0), points_(std::make_shared<Points>()) {
  points_->mean = mean;
  points_->read = std::move(read);
}

CellWeights::Values CellWeights::of(const Box& plane) const {
  if (by_rows()) {
    std::vector<double> weights;
    for (std::int64_t row = plane.begin[0]; row < plane.end(0); ++row) {
      weights.insert(weights.end(), static_cast<std::size_t>(plane.extent[1]),
                     rows_[static_cast<std::size_t>(row)]);
    }
    return std::make_shared<const std::vector<double>>(std::move(weights));
  }
  constexpr std::size_t kKept = 4;
  const std::lock_guard lock(points_->mutex);
  auto& kept = points_->kept;
  const auto known = std::ranges::find(kept, plane, &std::pair<Box, Values>::first);
  if (known != kept.end()) {
    std::rotate(known, known + 1, kept.end());
    return kept.back().second;
  }
  std::vector<double> weights(static_cast<std::size_t>(plane.extent.count()));
  if (!weights.empty()) points_->read(plane, weights);
  for (double& weight : weights) weight /= points_->mean;
  kept.emplace_back(plane, std::make_shared<const std::vector<double>>(std::move(weights)));
  if (kept.size() > kKept) kept.pop_front();
  return kept.back().second;
}

namespace {

CellWeights::ReadAreas areas_of_places(FileSet& files) {
  return [&files](const Box& plane, std::span<double> out) {
    const Shape grid = files.grid().shape();
    const std::vector<double> areas =
        cell_areas(files.read_degrees(with_neighbours(plane, grid)), plane, grid);
    std::ranges::copy(areas, out.begin());
  };
}

CellWeights::ReadAreas areas_of_variable(FileSet& files, const Field& field) {
  return [&files, field](const Box& plane, std::span<double> out) {
    files.read(field, Time{0}, plane, out);
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (std::isnan(out[i])) out[i] = 0;
      if (out[i] >= 0 && std::isfinite(out[i])) continue;
      const auto point = static_cast<std::int64_t>(i);
      throw DataError(concat("data.cell_area: ", field.name(), " in ", files.where(field), " is ", out[i],
                             " at row ", plane.begin[0] + point / plane.extent[1], ", column ",
                             plane.begin[1] + point % plane.extent[1],
                             " of the grid; areas of cells must be numbers from 0 on, or missing"));
    }
  };
}

/// The same, where a point of the last columns and its copy among the first ones, as far as both have an
/// area, count half each: together once.
/// @param repeated  FileSet::GoesRound::repeated.
CellWeights::ReadAreas shared_by_copies(CellWeights::ReadAreas read, std::int64_t columns,
                                        std::int64_t repeated) {
  if (repeated == 0) return read;
  return [read = std::move(read), columns, repeated](const Box& plane, std::span<double> out) {
    read(plane, out);
    const std::int64_t apart = columns - repeated;
    for (const std::int64_t first : {std::int64_t{0}, apart}) {
      const std::int64_t begin = std::max(plane.begin[1], first),
                         end = std::min(plane.end(1), first + repeated);
      if (begin >= end) continue;
      const Box copies{{plane.begin[0], first == 0 ? begin + apart : begin - apart},
                       {plane.extent[0], end - begin}};
      std::vector<double> areas(static_cast<std::size_t>(copies.extent.count()));
      read(copies, areas);
      for (std::int64_t i = 0; i < std::ssize(areas); ++i) {
        const std::int64_t row = i / copies.extent[1], column = begin + i % copies.extent[1];
        const auto at = static_cast<std::size_t>(row * plane.extent[1] + column - plane.begin[1]);
        if (areas[static_cast<std::size_t>(i)] > 0) out[at] /= 2;
      }
    }
  };
}

}  // namespace

std::optional<Field> variable_of_areas(const std::string& cell_area) {
  if (cell_area.empty() || cell_area == "auto") return std::nullopt;
  return Field{cell_area, {}};
}

CellWeights cell_weights(FileSet& files, const std::string& cell_area, Communicator& communicator) {
  const Grid& grid = files.grid();
  const std::optional<Field> variable = variable_of_areas(cell_area);
  if (!variable && (cell_area.empty() || grid.geographic)) return CellWeights(grid.row_weights());
  constexpr std::int64_t kRows = 32;  // at a time, whatever the number of ranks
  const Shape extents = grid.shape();
  const CellWeights::ReadAreas read =
      shared_by_copies(variable ? areas_of_variable(files, *variable) : areas_of_places(files), extents[1],
                       grid.geographic ? 0 : files.goes_round().repeated);
  const auto sum_of = [&](std::int64_t block) {
    const Box plane{{block * kRows, 0}, {std::min(kRows, extents[0] - block * kRows), extents[1]}};
    std::vector<double> areas(static_cast<std::size_t>(plane.extent.count()));
    read(plane, areas);
    return std::accumulate(areas.begin(), areas.end(), 0.0);
  };
  const double sum = share_work((extents[0] + kRows - 1) / kRows, communicator, sum_of, 0.0,
                                [](double& total, double of_block) { total += of_block; });
  together(communicator, [&] {
    if (sum > 0) return;
    throw DataError(variable
                        ? concat("data.cell_area: ", cell_area, " in ", files.where(*variable),
                                 " is above 0 nowhere; it must hold the areas of the grid's cells")
                        : concat("data.cell_area is \"auto\", and no point of the grid has neighbours along "
                                 "rows and columns; name a variable with the areas of cells"));
  });
  return CellWeights(extents[0], sum / static_cast<double>(extents.count()), read);
}

void select_cell_area(FileSet& files, const std::string& cell_area) {
  const std::optional<Field> field = variable_of_areas(cell_area);
  if (!field) return;
  try {
    files.select(*field, false);
  } catch (const DataError& error) {
    const std::vector<VariableSummary> known = files.catalogue();
    const auto summary = std::ranges::find(known, field->variable, &VariableSummary::name);
    if (summary != known.end() && !summary->levels.empty())
      throw DataError(concat("data.cell_area: ", field->variable,
                             " has levels; areas of cells are one field, without levels"));
    throw DataError(concat("data.cell_area: ", error.what()));
  }
  if (!files.is_regridded(*field)) return;
  throw DataError(concat("data.cell_area: ", cell_area, " in ", files.where(*field),
                         " lies on another grid than the data, to which areas cannot be brought; \"auto\" "
                         "takes the areas between the points of the data"));
}

}  // namespace jigsaw::inline samples
