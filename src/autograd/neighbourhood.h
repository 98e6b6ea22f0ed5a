#pragma once
#include <functional>

#include "autograd/field_operations.h"
#include "parallel/exchange.h"

namespace jigsaw {

/// Some outputs and the region of the padded input that they read, in global coordinates.
struct Tile {
  Box outputs, region;
};

/// The index map of a field's spatial dims; dims that read just their own points are left out.
/// @param reads  per spatial dim.
/// @param space  spatial extents of the result.
IndexMap field_map(const Shape& x, const std::vector<Reads>& reads, const Padding& padding,
                   const Shape& space);

/// Letters of a field: b, the spatial ones, and the last dim's.
Letters field_dims(int space, LetterDim last);
/// Sets what the rows that cut space send: halos as wide as the reads overlap.
void set_halos(Signature& signature, const IndexMap& map);

/// A row with an exchange cuts dims first to last of input i and of the result alike.
void require_cut_alike(const Decision& decision, std::size_t input, int first, int last);

/// The spatial dims of a box.
Box space_of(const Box& box);

/// This rank's outputs: those that read only what is here are made while halos travel, then the others, tile
/// by tile.
/// @param arrived  set to what came, for backward.
Array over_tiles(Tape& tape, const Exchange& exchange, const Box& outputs, const Array& piece, Array& arrived,
                 const std::function<Array(const Array& region, const Tile& tile)>& kernel);

/// A linear or piecewise linear operation on neighbourhoods, by its kernels on a region.
struct NeighbourhoodKernels {
  std::function<Array(const Array& region, const Tile& tile)> forward;
  /// The region's gradient.
  std::function<Array(const Array& dy, const Tile& tile)> backward;
};
Variable neighbourhood(Tape& on, const Variable& x, const Signature& signature, const IndexMap& map,
                       const NeighbourhoodKernels& kernels);

}  // namespace jigsaw
