#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "array/shape.h"
#include "files/chunk_codec.h"
#include "files/stored_type.h"

namespace jigsaw::inline files {

/// How an array of a Zarr store stands in its chunks, from its .zarray.
/// Source: "Zarr storage specification version 2".
struct ZarrArray {
  Shape shape, chunks;
  std::optional<StoredType> type;  ///< nothing for what is no number
  bool swapped = false;            ///< of the other byte order
  ChunkCodec codec = ChunkCodec::kNone;
  std::optional<double> fill;  ///< what stands in chunks that are not there
  char separator = '.';        ///< of the numbers in a chunk's name

  /// @throws DataError  that begins with `what`: for a malformed description, filters, and codecs other than
  ///                    zlib, gzip, blosc and zstd.
  ZarrArray(const nlohmann::json& zarray, const std::string& what);

  /// Numbers in a chunk; all chunks are whole, also those at the end.
  std::int64_t chunk_count() const { return chunks.count(); }
};

}  // namespace jigsaw::inline files
