#include "io/checkpoint.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <tuple>

#include "base/file.h"
#include "base/text.h"
#include "comm/agreement.h"

namespace jigsaw {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxManifestBytes = 256 << 20;
constexpr const char* kTemporary = ".tmp-";
constexpr const char* kReplaced = ".old";

/// All ranks run `body`; when it throws on any of them, all throw.
template <typename Body>
void agree(Communicator& communicator, const std::string& prefix, Body&& body) {
  const std::string failure = first_failure(communicator, body);
  if (!failure.empty()) throw CheckpointError(prefix + failure);
}

std::string step_name(std::int64_t step) {
  char text[32];
  std::snprintf(text, sizeof text, "step_%08lld", static_cast<long long>(step));
  return text;
}

std::string manifest_path(const std::string& checkpoint) {
  return checkpoint + "/manifest.json";
}

std::string shard_path(const std::string& checkpoint, std::size_t rank) {
  return checkpoint + "/" + shard_name(rank);
}

void check_size(const std::string& path, const ShardRecord& record) {
  std::error_code error;
  const std::uintmax_t bytes = fs::file_size(path, error);
  if (error)
    throw CheckpointError(concat("the checkpoint file ", path, " cannot be read: ", error.message()));
  if (static_cast<std::int64_t>(bytes) != record.bytes) {
    throw CheckpointError(
        concat("the checkpoint file ", path, " has ", bytes, " bytes, its manifest says ", record.bytes));
  }
}

void check_shard(const std::string& path, const ShardRecord& record) {
  check_size(path, record);
  if (digest_of_file(path) != record.digest) {
    throw CheckpointError(concat("the checkpoint file ", path, " is damaged: its digest does not fit"));
  }
}

std::string manifest_text(const std::string& checkpoint) {
  if (!fs::is_directory(checkpoint)) throw CheckpointError(concat("there is no checkpoint ", checkpoint));
  if (!fs::exists(manifest_path(checkpoint))) {
    throw CheckpointError(concat(checkpoint, " is not a whole checkpoint: it has no manifest.json"));
  }
  return read_text(manifest_path(checkpoint), kMaxManifestBytes);
}

std::string passed_over(const Error& error) {
  return concat(error.what(), "; it is passed over");
}

/// What a folder of checkpoints holds, as far as manifests and sizes of files tell.
struct Survey {
  struct Entry {
    std::string name;
    std::int64_t serial;
    std::int64_t step;
  };
  std::vector<Entry> whole;  ///< the one saved last comes first
  std::vector<std::string> warnings;
};

Survey survey(const std::string& folder) {
  Survey result;
  if (!fs::is_directory(folder)) return result;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string(), path = folder + "/" + name;
    if (!name.starts_with("step_") || !entry.is_directory()) continue;
    try {
      const StoredManifest stored = read_manifest(manifest_text(path), manifest_path(path));
      for (std::size_t rank = 0; rank < stored.shards.size(); ++rank) {
        check_size(shard_path(path, rank), stored.shards[rank]);
      }
      result.whole.push_back({name, stored.serial, stored.manifest.step});
    } catch (const Error& error) {
      result.warnings.push_back(passed_over(error));
    }
  }
  std::ranges::sort(result.whole, [](const auto& a, const auto& b) {
    return std::tie(a.serial, a.step, a.name) > std::tie(b.serial, b.step, b.name);
  });
  std::ranges::sort(result.warnings);
  return result;
}

void remove_folder(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) throw FileError(concat("cannot remove ", path, ": ", error.message()));
}

/// Removes a checkpoint so that no half of it is ever seen under its name.
void discard(const std::string& folder, const std::string& name) {
  if (!fs::exists(folder + "/" + name)) return;
  const std::string removed = concat(folder, "/", kTemporary, "removed-", name);
  remove_folder(removed);
  rename_path(folder + "/" + name, removed);
  remove_folder(removed);
}

/// The folder that takes the shards. What runs left that died while saving goes.
void prepare(const std::string& folder, const std::string& temporary) {
  if (fs::create_directories(folder)) sync_folder(fs::path(folder).parent_path().string());
  std::vector<std::string> leftovers;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kTemporary)) leftovers.push_back(folder + "/" + name);
  }
  for (const std::string& leftover : leftovers) remove_folder(leftover);
  fs::create_directory(temporary);
}

/// Gives the temporary folder, whole by now, its name.
void commit(const std::string& folder, const std::string& name, const std::string& temporary,
            const std::string& manifest) {
  read_manifest(manifest, manifest_path(temporary));
  write_text_atomically(manifest_path(temporary), manifest);
  if (fs::exists(folder + "/" + name)) {
    discard(folder, name + kReplaced);
    rename_path(folder + "/" + name, folder + "/" + name + kReplaced);
  }
  rename_path(temporary, folder + "/" + name);
  sync_folder(folder);
}

/// Once the new one is there: names it, and removes those that are no longer wanted.
void retire(const std::string& folder, const std::string& name, std::size_t keep) {
  write_text_atomically(folder + "/latest", name);
  discard(folder, name + kReplaced);
  const Survey present = survey(folder);
  for (std::size_t i = keep; i < present.whole.size(); ++i) discard(folder, present.whole[i].name);
  sync_folder(folder);
}

std::string describe(const ShardRecord::Piece& piece) {
  return concat("\"", piece.name, "\" of ", piece.count, " ", piece.dtype);
}

void check_pieces(const std::string& path, const std::vector<ShardRecord::Piece>& stored,
                  const std::vector<CheckpointPiece>& wanted) {
  for (std::size_t i = 0; i < std::max(stored.size(), wanted.size()); ++i) {
    const std::string there = i < stored.size() ? describe(stored[i]) : "no further piece";
    const std::string here = i < wanted.size() ? describe(describe_piece(wanted[i])) : "no further piece";
    if (there != here) {
      throw CheckpointError(concat("the checkpoint file ", path, " holds ", there, " where this run has ",
                                   here, "; model, precision and optimizer must be those it was saved with"));
    }
  }
}

}  // namespace

void save_checkpoint(const std::string& checkpoints_dir, const CheckpointManifest& manifest,
                     const std::vector<CheckpointPiece>& pieces, Communicator& communicator, int keep) {
  require(keep >= 1 && manifest.step >= 0, "a checkpoint keeps at least one, of a step that is not negative");
  const bool leads = communicator.rank() == 0;
  const std::string name = step_name(manifest.step);
  const std::string temporary = concat(checkpoints_dir, "/", kTemporary, name);
  const std::string prefix = concat("the checkpoint of step ", manifest.step, " cannot be saved: ");
  try {
    std::int64_t serial = 0;
    agree(communicator, prefix, [&] {
      if (!leads) return;
      prepare(checkpoints_dir, temporary);
      const Survey present = survey(checkpoints_dir);
      serial = present.whole.empty() ? 1 : present.whole.front().serial + 1;
    });
    std::string record;
    agree(communicator, prefix, [&] {
      const std::string path = shard_path(temporary, static_cast<std::size_t>(communicator.rank()));
      write_shard(path, pieces);
      sync_folder(temporary);
      record = describe_shard(path, pieces).dump();
    });
    const auto records = communicator.all_gather_text(record);
    agree(communicator, prefix, [&] {
      if (!leads) return;
      std::vector<Json> shards;
      for (const std::string& text : records) shards.push_back(Json::parse(text));
      commit(checkpoints_dir, name, temporary, write_manifest(manifest, serial, shards));
    });
  } catch (const CheckpointError&) {
    std::error_code ignored;
    if (leads) fs::remove_all(temporary, ignored);
    throw;
  }
  agree(communicator, concat("after saving the checkpoint of step ", manifest.step, ": "), [&] {
    if (leads) retire(checkpoints_dir, name, static_cast<std::size_t>(keep));
  });
}

std::optional<FoundCheckpoint> newest_checkpoint(const std::string& checkpoints_dir,
                                                 Communicator& communicator,
                                                 std::vector<std::string>& warnings) {
  std::string text;
  agree(communicator, "", [&] {
    if (communicator.rank() != 0) return;
    const Survey present = survey(checkpoints_dir);
    Json names = Json::array();
    for (const auto& entry : present.whole) names.push_back(entry.name);
    text = Json::array({names, present.warnings}).dump(-1, ' ', false, Json::error_handler_t::replace);
  });
  const Json found = Json::parse(communicator.all_gather_text(text).front());
  for (const Json& warning : found[1]) warnings.push_back(warning.get<std::string>());
  for (const Json& name : found[0]) {
    try {
      return open_checkpoint(concat(checkpoints_dir, "/", name.get<std::string>()), communicator);
    } catch (const CheckpointError& error) {
      warnings.push_back(passed_over(error));
    }
  }
  return std::nullopt;
}

FoundCheckpoint open_checkpoint(const std::string& path, Communicator& communicator) {
  std::string text;
  agree(communicator, "", [&] {
    if (communicator.rank() == 0) text = manifest_text(path);
  });
  text = communicator.all_gather_text(text).front();
  StoredManifest stored = read_manifest(text, manifest_path(path));
  agree(communicator, "", [&] {
    const auto ranks = static_cast<std::size_t>(communicator.size());
    for (auto i = static_cast<std::size_t>(communicator.rank()); i < stored.shards.size(); i += ranks) {
      check_shard(shard_path(path, i), stored.shards[i]);
    }
  });
  return {path, std::move(stored.manifest), std::move(stored.shards)};
}

void load_checkpoint(const FoundCheckpoint& checkpoint, std::vector<CheckpointPiece>& pieces,
                     Communicator& communicator) {
  const auto ranks = static_cast<std::size_t>(communicator.size());
  if (checkpoint.shards.size() != ranks) {
    throw CheckpointError(concat("the checkpoint ", checkpoint.path, " was saved by ",
                                 checkpoint.shards.size(), " ranks and cannot be loaded by ", ranks,
                                 "; start as many"));
  }
  agree(communicator, "", [&] {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    const std::string path = shard_path(checkpoint.path, rank);
    check_pieces(path, checkpoint.shards[rank].pieces, pieces);
    read_shard(path, pieces);
  });
}

}  // namespace jigsaw
