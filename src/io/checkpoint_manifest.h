#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/json.h"
#include "io/checkpoint_shard.h"

namespace jigsaw {

/// What a checkpoint says of the run as a whole; given and returned as it is. `extra` holds what is no
/// array: seed, sampler, schedule, counters, statistics, … Numbers in it are finite.
struct CheckpointManifest {
  std::int64_t step = 0;
  Json mesh;
  Json extra;
};

/// What a shard must be to be whole.
struct ShardRecord {
  struct Piece {
    std::string name;
    std::string dtype;
    std::int64_t count = 0;
    bool operator==(const Piece&) const = default;
  };
  std::int64_t bytes = 0;
  std::string digest;
  std::vector<Piece> pieces;
};

/// All that manifest.json holds.
struct StoredManifest {
  CheckpointManifest manifest;
  /// Counts the checkpoints of a folder in the order in which they were saved, which need not be that of
  /// their steps: a run may have been taken back to an earlier one.
  std::int64_t serial = 0;
  std::vector<ShardRecord> shards;  ///< by rank
};

/// "rank_0003.h5".
std::string shard_name(std::size_t rank);

/// What the shard of these pieces at `path` is now, read back from there.
Json describe_shard(const std::string& path, const std::vector<CheckpointPiece>& pieces);
ShardRecord::Piece describe_piece(const CheckpointPiece& piece);

/// @param shards  describe_shard() of every rank, in order.
std::string write_manifest(const CheckpointManifest& manifest, std::int64_t serial,
                           const std::vector<Json>& shards);

/// @param path  of manifest.json, for errors.
/// @throws CheckpointError  when the text is not a whole manifest, or one of a newer format.
StoredManifest read_manifest(std::string_view text, const std::string& path);

}  // namespace jigsaw
