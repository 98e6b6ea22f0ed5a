#pragma once
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "io/checkpoint_manifest.h"
#include "io/checkpoint_shard.h"

namespace jigsaw {

/// A whole checkpoint: its manifest fits, and so does every byte of its shards.
struct FoundCheckpoint {
  std::string path;
  CheckpointManifest manifest;
  std::vector<ShardRecord> shards;  ///< by rank
};

// All calls are collective, and all ranks throw alike: the CheckpointError of the lowest rank that failed.
//
// Layout of a folder of checkpoints:
//   step_00000200/rank_0000.h5, …, manifest.json   whole or absent
//   step_00000200.old/                             only while a step that exists is replaced
//   latest                                         the name of the one saved last
//   .tmp-…                                         left by a run that died; removed by the next save

/// Saves every rank's pieces: into a temporary folder, synced, agreed on by all ranks, then renamed. Until
/// then nothing that was there is touched; on an error it stays as it was. Afterwards only the `keep` saved
/// last are kept. A step that exists is replaced.
/// @param keep  at least 1.
void save_checkpoint(const std::string& checkpoints_dir, const CheckpointManifest& manifest,
                     const std::vector<CheckpointPiece>& pieces, Communicator& communicator, int keep);

/// Of the whole checkpoints in a folder the one saved last; nothing when there is none.
/// @param warnings  gets a sentence for each that is passed over because it is not whole.
std::optional<FoundCheckpoint> newest_checkpoint(const std::string& checkpoints_dir,
                                                 Communicator& communicator,
                                                 std::vector<std::string>& warnings);

/// The checkpoint in folder `path`, every byte verified: each shard is read once, by one of the ranks.
/// @throws CheckpointError  when it is not there, not whole, or of a newer format.
FoundCheckpoint open_checkpoint(const std::string& path, Communicator& communicator);

/// Fills the pieces' arrays from the shard that this rank wrote.
/// @throws CheckpointError  when the checkpoint is of another number of ranks, or naming the first piece that
///                          differs in name, type or count.
void load_checkpoint(const FoundCheckpoint& checkpoint, std::vector<CheckpointPiece>& pieces,
                     Communicator& communicator);

}  // namespace jigsaw
