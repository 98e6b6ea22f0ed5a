#pragma once
#include <cstdint>

namespace jigsaw::inline checkpoint {

/// What a save has just done, in order. All but the first four are rank 0's alone.
enum class SavePhase : std::uint8_t {
  kCopied,          ///< this rank's state is in the buffer
  kShardHalf,       ///< half of its shard is written
  kShardSynced,     ///< the shard is on the disk
  kAgreed,          ///< all ranks know that all shards are
  kViewsWritten,    ///< parameters.h5 too
  kManifestSynced,  ///< and the manifest: the temporary folder is whole
  kOldMoved,        ///< a checkpoint of the same step has made room
  kRenamed,         ///< the new one has its name
  kLatestWritten,   ///< `latest` names it
  kFirstRemoved,    ///< of those that are no longer kept one is gone
};
inline constexpr int kSavePhases = 10;

/// Called by a save between its phases. Does nothing; programs that test crashes link a definition of their
/// own in its place.
void reached(SavePhase phase, int rank);

}  // namespace jigsaw::inline checkpoint
