#pragma once
#include <string>
#include <vector>

#include "checkpoint/shard.h"

namespace jigsaw::inline checkpoint {

/// Bytes that are set apart in a view for the descriptions of so many tensors and pieces.
std::int64_t view_description_bytes(std::int64_t tensors, std::int64_t pieces);

/// Writes an HDF5 file that shows whole tensors: for every tensor "<group>/<name>" of the shards a virtual
/// data set "<name>" over their pieces, NaN where a shard is missing. It names the shards beside it
/// relatively. Syncs it.
/// @throws FileError  when the disk refuses; CheckpointError when HDF5 does.
FileRecord write_view(const std::string& folder, const std::string& name, const std::string& group,
                      const std::vector<ShardRecord>& shards);

}  // namespace jigsaw::inline checkpoint
