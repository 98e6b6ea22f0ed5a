#include "checkpoint/folder.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>
#include <tuple>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "checkpoint/save_phase.h"
#include "checkpoint/view.h"

namespace jigsaw::inline checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxManifestBytes = 256 << 20;
constexpr const char* kTemporary = ".tmp-";
constexpr const char* kReplaced = ".old";
constexpr const char *kLatest = "/latest", *kBest = "/best";

std::string step_name(std::int64_t step) {
  char text[32];
  std::snprintf(text, sizeof text, "step_%08lld", static_cast<long long>(step));
  return text;
}

std::string file_name(const std::string& path) {
  return fs::path(path).filename().string();
}

/// Whether there is anything of this name, be it a link that leads nowhere.
bool is_there(const std::string& path) {
  std::error_code error;
  const fs::file_type type = fs::symlink_status(path, error).type();
  if (type == fs::file_type::none) throw FileError(concat("cannot read ", path, ": ", error.message()));
  return type != fs::file_type::not_found;
}

/// What a name leads to. @throws FileError  when that cannot be told: it is behind a folder that may not be
/// entered.
fs::file_type type_of(const fs::path& path) {
  std::error_code error;
  const fs::file_type type = fs::status(path, error).type();
  if (type == fs::file_type::none)
    throw FileError(concat("cannot read ", path.string(), ": ", error.message()));
  return type;
}

void remove_folder(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) throw FileError(concat("cannot remove ", path, ": ", error.message()));
}

void create_folder(const std::string& path) {
  std::error_code error;
  const bool created = fs::create_directories(path, error);
  if (error) throw FileError(concat("cannot create ", path, ": ", error.message()));
  if (created) sync_folder(fs::path(path).parent_path().string());
}

/// Not those above it: a run directory that was moved is not begun anew.
void create_in_its_place(const std::string& path) {
  std::error_code error;
  const bool created = fs::create_directory(path, error);
  if (error) throw FileError(concat("cannot create ", path, ": ", error.message()));
  if (created) sync_folder(fs::path(path).parent_path().string());
}

/// Names in a folder that begin so; none when there is no folder.
std::vector<std::string> names_in(const std::string& folder, const std::string& begin) {
  std::vector<std::string> names;
  if (type_of(folder) != fs::file_type::directory) return names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with(begin)) names.push_back(name);
  }
  if (error) throw FileError(concat("cannot read ", folder, ": ", error.message()));
  std::ranges::sort(names);
  return names;
}

void check_space(const std::string& folder, std::int64_t bytes) {
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  if (error) return;  // where the file system does not tell, writing will
  if (static_cast<std::int64_t>(space.available) < bytes) {
    throw FileError(concat("it needs ", human_bytes(bytes), ", and the file system of ", folder, " has ",
                           human_bytes(static_cast<std::int64_t>(space.available)), " free"));
  }
}

}  // namespace

bool is_named_as_pointer(const std::string& path) {
  const std::string name = "/" + file_name(path);
  return name == kLatest || name == kBest;
}

namespace {

/// What is meant by a path.
struct Meant {
  std::string checkpoint;  ///< its folder, which need not be there
  fs::path pointer;        ///< the file that names it; "" where the path itself is meant
};

/// @throws CheckpointError, FileError
Meant meant_by(const std::string& path) {
  std::string folder = path;
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  fs::path pointer = folder;
  if (type_of(folder) == fs::file_type::directory &&
      type_of(manifest_path(folder)) == fs::file_type::not_found) {
    if (type_of(pointer / "checkpoints") == fs::file_type::directory) pointer /= "checkpoints";
    pointer += kLatest;
  }
  if (!is_named_as_pointer(pointer.string()) || type_of(pointer) != fs::file_type::regular)
    return {folder, ""};
  const std::string name = split(read_text(pointer.string(), 1 << 10), '\n').front();
  if (name.empty() || name.front() == '.' || name.find('/') != std::string::npos) {
    throw CheckpointError(
        concat(pointer.string(), " names ", quote(name), ", which is no checkpoint beside it"));
  }
  return {(pointer.parent_path() / name).string(), pointer};
}

/// Of a folder the checkpoints that could be meant instead.
std::string those_there(const std::string& folder) {
  constexpr std::size_t kMost = 6;
  std::vector<std::string> names = names_in(folder, "step_");
  if (names.empty()) return "no checkpoint is beside it";
  const std::size_t more = names.size() - std::min(names.size(), kMost);
  names.erase(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(more));
  return concat("beside it ", names.size() == 1 ? "is " : "are ", join(names, ", "),
                more > 0 ? concat(" and ", more, " of earlier steps") : "");
}

}  // namespace

std::string checkpoint_at(const std::string& path) try {
  Meant meant = meant_by(path);
  if (meant.pointer.empty() || is_there(meant.checkpoint)) return meant.checkpoint;
  // Who removes a checkpoint has let the file name another one before.
  const std::string gone = std::exchange(meant, meant_by(path)).checkpoint;
  if (meant.checkpoint != gone || is_there(gone)) return meant.checkpoint;
  throw CheckpointError(concat(meant.pointer.string(), " names ", file_name(gone),
                               ", which is not there any more; ",
                               those_there(meant.pointer.parent_path().string())));
} catch (const FileError& error) {
  throw CheckpointError(error.what());
}

bool chosen_anew(const std::string& path, const std::string& chosen) {
  std::error_code unreadable;
  if (fs::exists(chosen, unreadable) || unreadable) return false;
  try {
    return meant_by(path).checkpoint != chosen;
  } catch (const FileError& error) {
    throw CheckpointError(error.what());
  }
}

std::string manifest_path(const std::string& checkpoint) {
  return checkpoint + "/manifest.json";
}

std::string manifest_text(const std::string& checkpoint) {
  if (type_of(checkpoint) == fs::file_type::regular) {
    throw CheckpointError(
        concat(quote(checkpoint), " is a file, and a checkpoint is a folder",
               checkpoint.ends_with(".safetensors") ? "; jigsaw-train import makes one of this file" : ""));
  }
  if (type_of(checkpoint) != fs::file_type::directory)
    throw CheckpointError(concat("there is no checkpoint ", quote(checkpoint)));
  if (type_of(manifest_path(checkpoint)) == fs::file_type::not_found) {
    if (type_of(checkpoint + "/metrics.jsonl") == fs::file_type::regular)
      throw CheckpointError(concat("the run ", checkpoint, " has no whole checkpoint yet"));
    throw CheckpointError(concat(checkpoint, " is not a whole checkpoint: it has no manifest.json"));
  }
  return read_text(manifest_path(checkpoint), kMaxManifestBytes);
}

void check_size(const std::string& checkpoint, const FileRecord& file) {
  const std::string path = concat(checkpoint, "/", file.name);
  std::error_code error;
  const std::uintmax_t bytes = fs::file_size(path, error);
  if (error)
    throw CheckpointError(concat("the checkpoint file ", path, " cannot be read: ", error.message()));
  if (std::cmp_not_equal(bytes, file.bytes)) {
    throw CheckpointError(
        concat("the checkpoint file ", path, " has ", bytes, " bytes, its manifest says ", file.bytes));
  }
}

CheckpointFolder::Survey CheckpointFolder::survey() const {
  Survey result;
  for (const std::string& name : names_in(path_, "step_")) {
    const std::string checkpoint = concat(path_, "/", name);
    try {
      const StoredManifest stored = read_manifest(manifest_text(checkpoint), manifest_path(checkpoint));
      for (const FileRecord& file : stored.files()) check_size(checkpoint, file);
      result.whole.push_back({name, stored.serial, stored.manifest.step, stored.manifest.score});
    } catch (const Error& error) {
      result.warnings.push_back(concat(error.what(), "; it is passed over"));
    }
  }
  if (result.whole.empty() && result.warnings.empty() && is_there(path_ + kLatest))
    result.warnings.push_back(concat(path_, "/latest names a checkpoint, and none is there"));
  std::ranges::sort(result.whole, [](const auto& a, const auto& b) {
    return std::tie(a.serial, a.step, a.name) > std::tie(b.serial, b.step, b.name);
  });
  return result;
}

void CheckpointFolder::clean() const {
  for (const std::string& name : names_in(path_, kTemporary)) remove_folder(concat(path_, "/", name));
  remove_left(path_);
}

void CheckpointFolder::probe() const {
  const std::string trial = concat(path_, "/", kTemporary, "probe");
  create_folder(path_);
  create_folder(trial);
  remove_folder(trial);
}

std::string CheckpointFolder::set_aside_after(std::int64_t last) const {
  std::set<std::string> stays;
  std::string newest;
  for (const Entry& entry : survey().whole) {
    if (entry.serial > last) continue;
    stays.insert(entry.name);
    if (newest.empty()) newest = entry.name;
  }
  std::vector<std::string> goes = names_in(path_, "step_");
  std::erase_if(goes, [&](const std::string& name) { return stays.contains(name); });
  if (goes.empty()) {
    if (stays.empty()) {
      remove_folder(path_ + kLatest);
      remove_folder(path_ + kBest);
    }
    return "";
  }
  int number = 1;
  while (is_there(concat(path_, ".old-", number))) ++number;
  std::string aside = concat(path_, ".old-", number);
  if (stays.empty()) {
    rename_path(path_, aside);
    sync_folder(fs::path(path_).parent_path().string());
    return aside;
  }
  create_folder(aside);
  for (const std::string& name : goes) rename_path(concat(path_, "/", name), concat(aside, "/", name));
  write_text_atomically(path_ + kLatest, newest);
  sync_folder(aside);
  sync_folder(path_);
  return aside;
}

/// Removes a checkpoint so that no half of it is ever seen under its name.
void CheckpointFolder::discard(const std::string& name) const {
  if (!is_there(concat(path_, "/", name))) return;
  const std::string removed = concat(path_, "/", kTemporary, "removed-", name);
  remove_folder(removed);
  rename_path(concat(path_, "/", name), removed);
  remove_folder(removed);
}

std::string CheckpointFolder::begin(std::int64_t step, std::int64_t bytes) const {
  create_in_its_place(path_);
  check_space(path_, bytes);
  std::string temporary = concat(path_, "/", kTemporary, step_name(step));
  remove_folder(temporary);
  create_folder(temporary);
  return temporary;
}

std::string CheckpointFolder::commit(const std::string& temporary, const CheckpointManifest& manifest,
                                     const std::vector<ShardRecord>& shards) const {
  const std::string name = step_name(manifest.step);
  std::string path = concat(path_, "/", name);
  std::vector<FileRecord> views;
  views.push_back(write_view(temporary, "parameters.h5", "parameters", shards));
  const auto is_average = [](const PieceRecord& piece) { return piece.tensor.starts_with("average/"); };
  if (std::ranges::any_of(shards,
                          [&](const auto& shard) { return std::ranges::any_of(shard.pieces, is_average); }))
    views.push_back(write_view(temporary, "average.h5", "average", shards));
  reached(SavePhase::kViewsWritten, 0);
  const Survey present = survey();
  const std::int64_t serial = present.whole.empty() ? 1 : present.whole.front().serial + 1;
  const std::string text = write_manifest(manifest, serial, shards, views);
  read_manifest(text, manifest_path(temporary));
  write_text_atomically(manifest_path(temporary), text);
  reached(SavePhase::kManifestSynced, 0);
  if (is_there(path)) {
    discard(name + kReplaced);
    rename_path(path, path + kReplaced);
    reached(SavePhase::kOldMoved, 0);
  }
  rename_path(temporary, path);
  sync_folder(path_);
  reached(SavePhase::kRenamed, 0);
  return path;
}

std::optional<std::size_t> CheckpointFolder::best_of(const std::vector<Entry>& whole,
                                                     const Retention& retention) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const auto& score = whole[i].score;
    if (retention.best_metric.empty() || !score || score->metric != retention.best_metric) continue;
    if (!best || better(score->value, whole[*best].score->value, retention.best_is)) best = i;
  }
  return best;
}

std::vector<bool> CheckpointFolder::kept(const std::vector<Entry>& whole, const Retention& retention) {
  const std::optional<std::size_t> best = best_of(whole, retention);
  std::vector<bool> result;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const bool newest = std::cmp_less(i, retention.keep);
    const bool kth = retention.keep_every > 0 && whole[i].step % retention.keep_every == 0;
    result.push_back(newest || kth || best == i);
  }
  return result;
}

void CheckpointFolder::name_latest(const std::string& newest) const {
  write_text_atomically(path_ + kLatest, file_name(newest));
  reached(SavePhase::kLatestWritten, 0);
}

void CheckpointFolder::name_best(const std::vector<Entry>& whole, const Retention& retention) const {
  const std::optional<std::size_t> best = best_of(whole, retention);
  if (best) {
    write_text_atomically(path_ + kBest, whole[*best].name);
  } else {
    remove_folder(path_ + kBest);
  }
}

void CheckpointFolder::retire(const std::string& newest, const Retention& retention) const {
  discard(file_name(newest) + kReplaced);
  const std::vector<Entry> whole = survey().whole;
  name_best(whole, retention);
  const std::vector<bool> keeps = kept(whole, retention);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (keeps[i]) continue;
    discard(whole[i].name);
    reached(SavePhase::kFirstRemoved, 0);
  }
  sync_folder(path_);
}

void CheckpointFolder::abandon(const std::string& temporary) noexcept {
  std::error_code ignored;
  fs::remove_all(temporary, ignored);
}

}  // namespace jigsaw::inline checkpoint
