#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "array/shape.h"
#include "files/chunk_codec.h"
#include "files/stored_type.h"

namespace jigsaw::inline files {

/// How an array of a Zarr store stands in its chunks.
/// Sources: "Zarr storage specification version 2", "Zarr core specification version 3.0" with its codecs and
/// chunk key encodings.
struct ZarrArray {
  /// Where the chunks of a file stand in it.
  struct Shard {
    Shape chunks;              ///< so many along each dim
    bool index_first = false;  ///< the index stands at the begin, not at the end
    bool checked = false;      ///< a checksum stands behind the index

    /// Of the index: offset and length of each chunk, and its checksum.
    std::int64_t index_bytes() const { return chunks.count() * 16 + (checked ? 4 : 0); }
  };

  Shape shape, chunks;             ///< chunks as they are decoded
  std::optional<Shard> shard;      ///< where several chunks share a file
  std::optional<StoredType> type;  ///< nothing for what is no number
  bool swapped = false;            ///< of the other byte order
  ChunkPacking packing;
  std::optional<double> fill;  ///< what stands in chunks that are not there
  std::string time_unit;       ///< of NumPy's datetime64: "seconds", …, since 1970; "" of what is none
  std::string prefix;          ///< what the names of chunks begin with
  char separator = '.';        ///< of the numbers in a chunk's name
  std::string fault;           ///< why it cannot be read though it is well described; "" when it can

  /// The name of a chunk, or of a shard, in the array's folder.
  std::string file_name(const Shape& index) const;
  /// Notes why it cannot be read; the first reason counts.
  void refuse(const std::string& why);
};

/// From a .zarray. What has filters, Fortran's order or another compressor than zlib, gzip, blosc and zstd is
/// at fault. @throws DataError  that begins with `what`, for a malformed description.
ZarrArray zarr_array_of_format2(const nlohmann::json& zarray, const std::string& what);

/// From a zarr.json whose node_type is "array". Read are regular grids of chunks and the codecs bytes, gzip,
/// zstd, blosc, crc32c and sharding_indexed; what has others is at fault. @throws DataError  as above.
ZarrArray zarr_array_of_format3(const nlohmann::json& metadata, const std::string& what);

/// What both formats say alike.
namespace zarr_metadata {

/// A list of extents, each at least `least`. @throws DataError
Shape extents(const nlohmann::json& object, const char* key, std::int64_t least, const std::string& what);
/// "u1", "i2", …, "f8": nothing for others.
std::optional<StoredType> type_of(const std::string& kind_and_bytes);
/// "seconds" for "s" and the like, for datetime64's units of a second and more; "" for others.
std::string time_unit(const std::string& unit);
/// A number, "NaN", "Infinity" or "-Infinity"; nothing for others.
std::optional<double> number_of(const nlohmann::json& value);
/// The same of a fill_value, which may be false or true.
std::optional<double> fill_of(const nlohmann::json& value);
/// A text for messages, as far as it fits in; "" for what is none.
std::string word_of(const nlohmann::json& value);
/// Checks what both formats must fulfil. @throws DataError
void check(const ZarrArray& array, const std::string& what);
[[noreturn]] void refuse(const std::string& what, const std::string& why);

}  // namespace zarr_metadata

}  // namespace jigsaw::inline files
