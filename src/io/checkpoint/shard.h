#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "array/array.h"
#include "array/box.h"

namespace jigsaw::inline checkpoint {

/// Elements of a tensor: what a file says beyond that is no tensor but an attempt to overflow.
inline constexpr std::int64_t kMostElements = std::int64_t{1} << 56;

/// A part of a global tensor, as checkpoints keep it: elements of `box`, row-major.
struct CheckpointPiece {
  std::string tensor;  ///< path of the tensor: "parameters/encoder.weight"
  Shape shape;         ///< of the whole tensor
  Box box;
  Array array;  ///< of box.extent.count() elements, fp32 or fp64, on the host
};

/// A file of a checkpoint, as its manifest knows it.
struct FileRecord {
  std::string name;
  std::int64_t bytes = 0;
  std::string digest;  ///< of its bytes; see ExpectedFile::by_pieces
};

/// Where a piece stands in a shard.
struct PieceRecord {
  std::string tensor;
  DType dtype = DType::kFloat32;
  Shape shape;  ///< of the whole tensor
  Box box;
  std::int64_t offset = 0;  ///< in the file, in bytes; 0 for an empty piece
  std::string digest;       ///< of its bytes
};

struct ShardRecord {
  FileRecord file;
  std::vector<PieceRecord> pieces;
};

/// "rank_0003.h5".
std::string shard_name(std::size_t index);
/// Path of the data set that holds the piece `number` of a tensor in its shard:
/// "parameters/encoder.weight#0".
std::string data_set_name(const std::string& tensor, std::size_t number);

/// Bytes that are set apart in a shard for the descriptions of so many pieces: more than HDF5 needs.
std::int64_t shard_description_bytes(std::size_t pieces);

/// Writes the pieces into the new HDF5 file FOLDER/NAME, one contiguous data set of the box's extent each,
/// with attributes "begin", "shape" and "xxh64", and syncs it. HDF5 lays the file out in memory; the bytes
/// are written outside its lock, in the order of the file, into space that was reserved first. Pieces of no
/// elements are left out.
/// @param half_way  called once when about half of the bytes are written.
/// @throws FileError  when the disk refuses; CheckpointError when HDF5 does.
ShardRecord write_shard(const std::string& folder, const std::string& name,
                        const std::vector<CheckpointPiece>& pieces,
                        const std::function<void()>& half_way = {});

/// Writes bytes to the new file FOLDER/NAME and syncs it. @throws FileError
FileRecord write_file(const std::string& folder, const std::string& name, std::span<const std::byte> bytes);

}  // namespace jigsaw::inline checkpoint
