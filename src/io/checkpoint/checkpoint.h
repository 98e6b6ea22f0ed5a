#pragma once
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/folder.h"
#include "checkpoint/manifest.h"
#include "comm/communicator.h"

namespace jigsaw::inline checkpoint {

/// A whole checkpoint: its manifest fits, and so does every byte of its files, unless they were not to be
/// verified.
struct FoundCheckpoint {
  std::string path;
  StoredManifest stored;            ///< its shards and views on rank 0 only
  std::int64_t verified_bytes = 0;  ///< that this rank read for it
};

enum class Verify : std::uint8_t { kBytes, kSizesOnly };

// Collective calls: all ranks throw alike the CheckpointError of the lowest rank that failed.

/// The checkpoint at checkpoint_at(path); where it is removed before it is opened, the one that is chosen
/// then. Every byte is verified: each file is read once, by one of the ranks. Collective.
/// @throws CheckpointError  when it is not there, not whole, or of a newer format.
FoundCheckpoint open_checkpoint(const std::string& path, Communicator& communicator,
                                Verify verify = Verify::kBytes);

/// checkpoint_at(path), on rank 0. Collective. @throws CheckpointError
FoundCheckpoint choose_checkpoint(const std::string& path, Communicator& communicator);
/// Opens the checkpoint that rank 0 has the path of. Collective. @throws CheckpointError
void open_chosen(FoundCheckpoint& found, Communicator& communicator, Verify verify);
/// chosen_anew() as rank 0 sees it. Collective.
bool chosen_anew(const std::string& path, const FoundCheckpoint& found, Communicator& communicator);

/// use(open_checkpoint(path)), and once more with the one that is chosen then where that one was removed
/// meanwhile and so `use` failed: what it reads of a checkpoint it reads as long as it likes beside a
/// training that keeps few. Collective; `use` throws alike on all ranks.
template <typename Use>
auto with_checkpoint(const std::string& path, Communicator& communicator, Verify verify, Use&& use) {
  for (int choices = 1;; ++choices) {
    FoundCheckpoint found = choose_checkpoint(path, communicator);
    try {
      open_chosen(found, communicator, verify);
      return use(found);
    } catch (const Error& error) {
      if (error.code() != ExitCode::kCheckpoint || choices == kMostChoices ||
          !chosen_anew(path, found, communicator))
        throw;
    }
  }
}

/// Of the whole checkpoints in a folder the one saved last; nothing when there is none. Collective.
/// @param warnings  gets a sentence for each that is passed over because it is not whole.
std::optional<FoundCheckpoint> newest_checkpoint(const std::string& checkpoints_dir,
                                                 Communicator& communicator,
                                                 std::vector<std::string>& warnings,
                                                 Verify verify = Verify::kBytes);

/// Throws unless a checkpoint holds these tensors, and below the paths "<group>/" where they stand no other:
/// names the first that differs.
void check_tensors(const FoundCheckpoint& checkpoint, const std::vector<TensorRecord>& expected);

/// Fills the pieces' arrays, whatever the mesh that wrote the checkpoint: of each stored piece just the
/// intersection with a wanted one is read. Elements are converted where the types differ. Rank 0 tells each
/// rank which stored pieces those are. Collective over the ranks that opened it; each wants pieces of its
/// own.
/// @return  bytes read by this rank.
/// @throws CheckpointError  when a tensor is missing or of another shape, or a file cannot be read.
std::int64_t read_pieces(const FoundCheckpoint& checkpoint, const std::vector<CheckpointPiece>& wanted,
                         Communicator& communicator);

}  // namespace jigsaw::inline checkpoint
