#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "array/box.h"
#include "fields/file_set.h"

namespace jigsaw::inline samples {

/// What reading a piece of one state of all fields takes, known from the headers of files alone.
struct ReadCost {
  std::int64_t wanted = 0;   ///< bytes of the piece, as they are stored
  std::int64_t fetched = 0;  ///< with the rest of chunks and of pages that come along, uncompressed
  std::string worst;         ///< the variable with the largest ratio of its own
  std::string path, format;  ///< of a file of it
  Shape chunks;              ///< its chunks; of rank 0 where it has none

  double amplification() const {
    return wanted > 0 ? static_cast<double>(fetched) / static_cast<double>(wanted) : 1.0;
  }
};

/// @param piece  rows and columns of the grid.
ReadCost cost_of_reading(const std::vector<FieldStorage>& fields, const Box& piece);

/// The chunks that a piece of one state of all fields has points of.
struct PieceChunks {
  std::int64_t bytes = 0;  ///< of all, as they are decoded
  bool later = false;      ///< some hold several times, levels or channels, which may be wanted next
  bool elsewhere = false;  ///< some hold points beyond the piece, which other pieces need
};
/// @param piece  rows and columns of the grid.
PieceChunks chunks_of_piece(const std::vector<FieldStorage>& fields, const Box& piece);

/// The largest extent of chunks with which no rank fetches more than `limit` times what it needs of a dim
/// that is cut into pieces (first-remainder); where none has that, the one that comes nearest.
/// @param least  chunks are no smaller, unless a piece is.
std::int64_t chunk_extent(std::int64_t extent, std::int64_t pieces, double limit, std::int64_t least = 1);

/// Rows and columns of chunks that suit a cut of both dims; of at least 16 KiB, as far as pieces have that.
/// @param element  bytes of a number.
Shape chunks_for(const Shape& grid, const Shape& pieces, std::int64_t element);

}  // namespace jigsaw::inline samples
