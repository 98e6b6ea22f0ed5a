#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "array/array.h"

namespace jigsaw {

/// A flat array of this rank, as checkpoints keep it: fp32 or fp64, on the host, possibly empty.
struct CheckpointPiece {
  std::string name;  ///< path of the data set: groups are made for what stands before a "/"
  Array array;
};

/// Writes the pieces into a new HDF5 file, one contiguous data set each, and syncs it. HDF5 only lays the
/// file out, in memory: it never touches the disk, for a file that it failed to write would take the process
/// down at its end. All bytes are written outside its lock, into space that was reserved first.
/// @throws FileError  when the disk refuses; CheckpointError when HDF5 does.
void write_shard(const std::string& path, const std::vector<CheckpointPiece>& pieces);

/// Fills the arrays from the data sets of their names.
/// @throws FileError        when the file cannot be read.
/// @throws CheckpointError  when it is no HDF5 file, or naming the first piece that is not there in the type
///                          and count of its array.
void read_shard(const std::string& path, const std::vector<CheckpointPiece>& pieces);

/// XXH64 of a text, as 16 hexadecimal digits.
std::string digest_of_text(std::string_view text);
/// XXH64 of the bytes of a file.
std::string digest_of_file(const std::string& path);

}  // namespace jigsaw
