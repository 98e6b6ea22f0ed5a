#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/best_is.h"
#include "base/file.h"
#include "checkpoint/manifest.h"

namespace jigsaw::inline checkpoint {

/// Which checkpoints of a folder stay when a new one stands.
struct Retention {
  std::int64_t keep = 1;             ///< those saved last, at least 1
  std::int64_t keep_every = 0;       ///< and all whose step is a multiple; 0: none
  std::string best_metric;           ///< and the one of the best score of this metric; "": none
  BestIs best_is = BestIs::kLowest;  ///< never kAuto
};

/// A folder of checkpoints, on the disk: what one rank does. A checkpoint that is not whole, as far as its
/// manifest and the sizes of its files tell, does not exist.
///
///   step_00000200/rank_0000.h5, …, parameters.h5, manifest.json   whole or absent
///   step_00000200.old/                                            only while a step that exists is replaced
///   latest                                                        the name of the one saved last
///   best                                                          the one with the best score, where there
///   is .tmp-…                                                        left by a run that died
///
/// Errors are FileError, and CheckpointError when HDF5 or a manifest fails.
class CheckpointFolder {
 public:
  struct Entry {
    std::string name;
    std::int64_t serial = 0, step = 0;
    std::optional<CheckpointScore> score;
  };
  struct Survey {
    std::vector<Entry> whole;  ///< the one saved last comes first
    std::vector<std::string> warnings;
  };

  explicit CheckpointFolder(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  Survey survey() const;

  /// Removes what runs left that died while saving.
  void clean() const;
  /// Makes the folder, and a folder in it for a moment: what forbids saving shows before there is anything to
  /// lose.
  void probe() const;
  /// Moves all checkpoints that were not saved up to serial `last` into the new folder "<path>.old-1" (or -2,
  /// …), and lets `latest` name what is newest then. That folder, or "" when there was nothing to move.
  std::string set_aside_after(std::int64_t last) const;

  /// Makes the folder for the shards of a new checkpoint, for which `bytes` (checkpoint_bytes()) must be
  /// free. Folders above path() must be there.
  std::string begin(std::int64_t step, std::int64_t bytes) const;
  /// With all shards in place: views, manifest, names.
  /// @return its path.
  std::string commit(const std::string& temporary, const CheckpointManifest& manifest,
                     const std::vector<ShardRecord>& shards) const;
  /// Once the new one stands: lets `latest` name it.
  void name_latest(const std::string& newest) const;
  /// Lets `best` name the one of these that has the best score; where none has one there is no such file.
  void name_best(const std::vector<Entry>& whole, const Retention& retention) const;
  /// Then: removes those that are no longer kept.
  void retire(const std::string& newest, const Retention& retention) const;
  /// Forgets a checkpoint that was begun and not committed; never throws.
  static void abandon(const std::string& temporary) noexcept;

  /// Of a survey the one that has the best score of the metric that counts, of several the one saved last.
  static std::optional<std::size_t> best_of(const std::vector<Entry>& whole, const Retention& retention);
  /// Those of a survey that stay.
  static std::vector<bool> kept(const std::vector<Entry>& whole, const Retention& retention);

 private:
  void discard(const std::string& name) const;

  std::string path_;
};

/// Runs body(); what a disk refuses there is a checkpoint that cannot be read or written.
template <typename Body>
void as_checkpoint_error(Body&& body) {
  try {
    body();
  } catch (const FileError& error) {
    throw CheckpointError(error.what());
  }
}

/// Whether it is called as the files that name one of the checkpoints beside them: `latest`, `best`.
bool is_named_as_pointer(const std::string& path);
/// The folder of the checkpoint that a user means: `path` itself, or what the file `latest` or `best` names
/// that it is, or the file `latest` that it or the folder `checkpoints` in it holds (of a run directory).
/// @throws CheckpointError  when such a file names something elsewhere or what is gone, or what is there
/// cannot be looked at.
std::string checkpoint_at(const std::string& path);

/// How often at most a checkpoint is chosen for a path.
inline constexpr int kMostChoices = 4;
/// Whether the checkpoint that checkpoint_at(path) chose has been removed since and another one is chosen
/// now, as beside a training that keeps few. Never of one that `path` itself is.
bool chosen_anew(const std::string& path, const std::string& chosen);

/// use(checkpoint_at(path)), and once more with what is chosen then where that one was removed meanwhile and
/// so `use` failed.
template <typename Use>
auto with_checkpoint_at(const std::string& path, Use&& use) {
  for (int choices = 1;; ++choices) {
    const std::string chosen = checkpoint_at(path);
    try {
      return use(chosen);
    } catch (const Error&) {
      if (choices == kMostChoices || !chosen_anew(path, chosen)) throw;
    }
  }
}

std::string manifest_path(const std::string& checkpoint);
/// The manifest's text. @throws CheckpointError  when there is no checkpoint or it has no manifest.
std::string manifest_text(const std::string& checkpoint);
/// @throws CheckpointError  when the file of a checkpoint is missing or of another size.
void check_size(const std::string& checkpoint, const FileRecord& file);

}  // namespace jigsaw::inline checkpoint
