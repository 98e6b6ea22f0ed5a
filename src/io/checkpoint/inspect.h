#pragma once
#include <string>

namespace jigsaw::inline checkpoint {

/// What a file or folder holds, as a tree for people.
struct Inspection {
  std::string text;
  /// What is damaged or missing, one sentence; "" when all is whole.
  std::string damage;
};

/// Of a checkpoint (its folder, a `latest`, a folder with one): step, tensors with shapes, types, sizes and
/// placements, files with the verdict on their digests, and of a damaged shard the pieces whose digests do
/// not fit. Of a safetensors, NetCDF or HDF5 file: tensors or variables; of NIfTI what
/// describe_nifti() says, too.
/// @throws CheckpointError, DataError, FileError  when it is none of these.
Inspection inspect(const std::string& path);

}  // namespace jigsaw::inline checkpoint
