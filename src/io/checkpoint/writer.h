#pragma once
#include <atomic>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/folder.h"
#include "comm/communicator.h"

namespace jigsaw::inline checkpoint {

/// How a save ended; the same on all ranks.
struct SaveOutcome {
  std::int64_t step = 0;
  std::string path;  ///< of the checkpoint; "" when it could not be saved
  /// Why it could not be, or what went wrong after it stood, or after the one before did; "" when nothing
  /// did.
  std::string failure;
  double seconds = 0;  ///< from start() on
  bool saved() const { return !path.empty(); }
};

/// Saves checkpoints beside the training: start() copies this rank's pieces (from a device while it goes on
/// computing, until copied() is called), a thread of each rank writes its shard, and when all ranks know that
/// all shards are on the disk, a thread of rank 0 gives the whole its name. Until then nothing that was there
/// is touched, and when a rank cannot write it stays so. Ranks agree in poll(), so that the threads never
/// communicate.
///
/// start(), poll() and finish() are collective and never throw for what a disk does; on all ranks the outcome
/// of a save is told once.
class CheckpointWriter {
 public:
  CheckpointWriter(std::string folder, Retention retention, Communicator& communicator);
  /// Waits for its thread. A save that is not agreed on by then is none: call finish() before.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  bool busy() const { return stage_ != Stage::kIdle; }
  /// Copies the pieces and begins to write; not while busy(). Returns an outcome only when the save cannot
  /// even begin.
  ///
  /// @param pieces  which may not change before copied() is called.
  std::optional<SaveOutcome> start(const CheckpointManifest& manifest,
                                   const std::vector<CheckpointPiece>& pieces);
  /// What a device does to the pieces from now on comes behind their copies. Not collective.
  void copied();
  /// The outcome of the save under way, once it ended. Costs nothing while not busy().
  std::optional<SaveOutcome> poll() { return advance(false); }
  /// Waits for it, and until those that are no longer kept are gone.
  std::optional<SaveOutcome> finish();
  /// Waits until those that are no longer kept are gone, which delays no outcome of poll(): how many seconds
  /// that took on this rank after the last save. Not collective.
  double settle();

 private:
  enum class Stage : std::uint8_t { kIdle, kWriting, kCommitting };
  struct Committed {
    std::string path, failure;
  };
  struct Retired {
    std::string failure;
    double seconds = 0;
  };

  void copy(const std::vector<CheckpointPiece>& pieces);
  bool start_copy(const std::vector<CheckpointPiece>& pieces);
  void wait_for_copy() const;
  void start_write();
  ShardRecord write();
  Committed commit(const std::vector<std::string>& records);
  Retired retire(const std::string& path);
  std::optional<SaveOutcome> advance(bool wait);
  void begin_commit();
  SaveOutcome end(const std::string& path, const std::string& failure);

  CheckpointFolder folder_;
  Retention retention_;
  Communicator& communicator_;
  Stage stage_ = Stage::kIdle;
  double started_ = 0;
  CheckpointManifest manifest_;
  std::vector<CheckpointPiece> pieces_;   ///< the copies
  std::vector<CheckpointPiece> copying_;  ///< what a device copies them from
  std::optional<Context> page_locked_;    ///< where it copies them to
  Milestone copy_;                        ///< it has done so
  std::atomic<bool> ends_ = false;        ///< nobody will wait for a device any more
  std::string temporary_;
  std::string failure_;
  std::future<ShardRecord> shard_;
  std::future<Committed> committed_;  ///< rank 0's
  std::future<Retired> retiring_;     ///< rank 0's
  Retired retired_;                   ///< what came of the last one that has ended
};

/// start() and finish() at once. @throws CheckpointError  when it could not be saved, on all ranks.
SaveOutcome save_checkpoint(const std::string& folder, const CheckpointManifest& manifest,
                            const std::vector<CheckpointPiece>& pieces, Communicator& communicator,
                            const Retention& retention);

}  // namespace jigsaw::inline checkpoint
