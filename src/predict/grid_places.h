#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "fields/file_set.h"
#include "fields/named_places.h"
#include "grids/point_weights.h"
#include "kernels/box_table.h"
#include "parallel/sharded_tensor.h"

namespace jigsaw::inline predict {

/// How values at places are made of those of the grid's points: linear in latitude and longitude between the
/// four around each (on a projection the mean of the four nearest, weighted by inverse distance, as
/// data.regrid has it), or those of the nearest one. Points without a value have no weight, and where more
/// than half of it lacks there is none.
enum class PlaceValue : std::uint8_t { kLinear, kNearest };
/// "linear" or "nearest". @throws ConfigError
PlaceValue parse_place_value(const std::string& text);

/// Values of sharded states at places on the grid. Each rank adds what its own points give, so that no rank
/// holds a field.
class GridPlaces {
 public:
  /// Finds the points around the places on rank 0, which of a projection reads latitudes and longitudes of
  /// all points, and tells the others. Collective: what throws on one rank throws on all.
  /// @param files   whose grid it is. @param places  those of rank 0 count.
  /// @param source  what lists them, for errors: "--points towns.csv".
  /// @throws DataError  when none lies on the grid
  GridPlaces(FileSet& files, const NamedPlaces& places, PlaceValue how, const std::string& source,
             Communicator& world);

  /// Those that lie on the grid, in their order.
  const NamedPlaces& places() const { return places_; }
  std::int64_t size() const { return static_cast<std::int64_t>(places_.size()); }
  /// Of each of them its number in the list that was given.
  const std::vector<std::size_t>& numbers() const { return numbers_; }
  /// "3 of the 120 places of --points towns.csv lie beyond the grid, the first of them Lima (-12.05,
  /// -77.04)"; "" where none does.
  const std::string& remark() const { return remark_; }

  /// [samples, channels, places], equal on every rank; NaN where there is no value. Collective over the mesh.
  /// @param layout    [B, H, W, C]. @param states  this rank's piece, f64.
  /// @param channels  those that are wanted, numbers among C.
  std::vector<double> values(const Rank& rank, const Layout& layout, const Array& states,
                             std::span<const int> channels);

 private:
  void find(FileSet& files, const NamedPlaces& all, PlaceValue how, const std::string& source);
  void look_at(const Box& box);

  NamedPlaces places_;
  std::vector<std::size_t> numbers_;
  std::string remark_;
  std::vector<PointWeights::Term> terms_;  ///< of places_
  // Of a piece of the states: the terms whose points are there, and how these come together.
  std::optional<Box> box_;
  std::vector<PointWeights::Term> own_;  ///< `column` is the point's number among those that are gathered
  std::int64_t gathered_ = 0;
  BoxTable table_;
};

}  // namespace jigsaw::inline predict
