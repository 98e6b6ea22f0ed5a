#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/shard.h"
#include "config/json.h"

namespace jigsaw::inline checkpoint {

/// How well the state of a checkpoint did in the validation after its step.
struct CheckpointScore {
  std::string metric;
  double value = 0;
};

/// What a checkpoint says of the run as a whole; given and returned as it is. `extra` holds what is no
/// array: seed, sampler, schedule, counters, statistics, … Numbers in it are finite.
struct CheckpointManifest {
  std::int64_t step = 0;
  Json mesh;
  Json extra;
  std::optional<CheckpointScore> score;
};

/// A whole tensor of a checkpoint; the pieces in the shards make it up.
struct TensorRecord {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
};

/// All that manifest.json holds. Files and pieces grow with the ranks that saved it: of a checkpoint that
/// several ranks open, only the first has them.
struct StoredManifest {
  CheckpointManifest manifest;
  /// Counts the checkpoints of a folder in the order in which they were saved, which need not be that of
  /// their steps: a run may have been taken back to an earlier one.
  std::int64_t serial = 0;
  std::vector<TensorRecord> tensors;  ///< in the order of the model
  std::vector<ShardRecord> shards;    ///< by rank
  std::vector<FileRecord> views;      ///< files beside the shards that show whole tensors
  std::int64_t version = 0;           ///< of the format, where shards are known

  /// See ExpectedFile::by_pieces: so from version 3 on.
  bool digests_by_pieces() const { return version >= 3; }

  /// Nothing when there is no tensor of that name.
  const TensorRecord* find(const std::string& tensor) const;
  /// The first tensor "<group>/…".
  const TensorRecord* find_group(const std::string& group) const;
  /// Shards and views.
  std::vector<FileRecord> files() const;
};

/// Shards as JSON, {"tensors": …, "shards": …}, and back: for the manifest and on the way to the rank that
/// writes it.
Json describe_shards(const std::vector<ShardRecord>& shards);
/// @throws Error  when the text is no manifest, or pieces do not make up whole tensors with each element
/// once,
///                overlap in their files or lie outside of them. `whole` false: pieces may be missing.
std::vector<ShardRecord> read_shards(const Json& json, bool whole);

/// What every rank knows of a checkpoint, as text: all but shards and views.
std::string head_of(const StoredManifest& stored);
StoredManifest read_head(const std::string& text);

/// A whole number from 0 to `most`. @throws Error  when the value is not.
std::int64_t read_count(const Json& json, std::int64_t most = std::numeric_limits<std::int64_t>::max());
/// More steps than any run makes.
inline constexpr std::int64_t kMostSteps = 1'000'000'000'000'000;

/// Why a tensor cannot have this name (of its group and of itself), or "".
std::string fault_of_name(const std::string& name);

Json describe_file(const FileRecord& file);
FileRecord read_file_record(const Json& json);

/// @param shards  of every rank, in order.
std::string write_manifest(const CheckpointManifest& manifest, std::int64_t serial,
                           const std::vector<ShardRecord>& shards, const std::vector<FileRecord>& views);

/// @param path  of manifest.json, for errors.
/// @throws CheckpointError  when the text is not a whole manifest, or one of a newer format.
StoredManifest read_manifest(std::string_view text, const std::string& path);

/// The tensors of shards, in the order in which they come first.
std::vector<TensorRecord> tensors_of(const std::vector<ShardRecord>& shards);

}  // namespace jigsaw::inline checkpoint
