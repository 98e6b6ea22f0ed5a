#pragma once
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "array/box.h"

namespace jigsaw::inline files {

/// How a variable stands in an array of a Zarr store whose last dim is all points of a grid, row after row.
enum class CellsAs : std::uint8_t {
  kNone,     ///< the array has the variable's dims
  kPlane,    ///< the variable's last two dims, rows and columns, are one in the array
  kRows,     ///< the variable has of each row the first point
  kColumns,  ///< and this has the points of the first row
};

/// Where the numbers of a variable are in a store.
struct ZarrPlace {
  std::string folder;  ///< of the array
  CellsAs as = CellsAs::kNone;
  std::int64_t columns = 0;  ///< of the grid, where it is one

  /// Where a box of the variable begins and ends in the array, with the points between its rows.
  Box in_array(const Box& box) const;
  /// Whether in_array() has only points of the box.
  bool gapless(const Box& box) const;
  /// From the numbers of in_array() those of the box.
  void gather(const Box& box, std::span<const std::byte> from, std::span<std::byte> to,
              std::int64_t size) const;

  nlohmann::json to_json() const;
  static ZarrPlace from_json(const nlohmann::json& json);
};

/// What the attributes of a store say of a data set as anemoi-datasets makes it: an array `data` [time,
/// variable, ensemble, cell] with the names of its variables and the rows and columns of its cells.
/// Source: anemoi-datasets 0.5, create/fields/init.py.
struct AnemoiAttributes {
  std::vector<std::string> variables;
  std::int64_t rows = 0, columns = 0;  ///< 0: the points are not those of rows and columns

  /// Nothing when they are none of such a data set.
  /// @param extents  of `data`.
  static std::optional<AnemoiAttributes> of(const nlohmann::json& attributes, const Shape& extents);
};

/// Whether latitudes and longitudes of all points, row after row, are one in each row and in each column.
bool are_rows_and_columns(std::span<const double> latitudes, std::span<const double> longitudes,
                          std::int64_t columns);

}  // namespace jigsaw::inline files
