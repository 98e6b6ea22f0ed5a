#pragma once
#include <vector>

#include "array/box.h"
#include "grids/forcings.h"

namespace jigsaw::inline grids {

/// A box [H, W] and one row and column more on each side, as far as a grid of these extents goes.
Box with_neighbours(const Box& plane, const Shape& grid);

/// Areas of the cells around points that each have a latitude and a longitude, in steradians, row by row: of
/// the spherical quadrilateral whose corners are the middles of four points each. At the ends of the grid,
/// and beside points without a place, the next point is taken to lie as far away as the one on the other
/// side, or at the pole where that is a row. 0 for points without a place (NaN), and for those that have no
/// neighbour with one along rows or along columns.
///
/// @param places  of with_neighbours() of the plane, row by row.
/// @param plane   the points whose areas are wanted, [H, W].
/// @param grid    extents of the grid.
std::vector<double> cell_areas(const PointPlaces& places, const Box& plane, const Shape& grid);

}  // namespace jigsaw::inline grids
