#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "array/device_runtime.h"
#include "comm/communicator.h"
#include "samples/batch.h"

namespace jigsaw::inline train {

/// Records training steps as CUDA graphs, and replays them. A step is a sequence of pieces: each part of its
/// batch, and the update; between them the host brings batches and decides. Of each kind of step (as long a
/// rollout, arrays of the same shapes) the first ones run unrecorded. Once one of them made the host neither
/// wait nor upload (tables are uploaded at first use), the next is recorded, on all ranks at once, and those
/// after it replay it: the same kernels on the same memory, and so the same bits. What differs from step to
/// step the kernels read from arrays: a copy of the batch in one place, the step's number (RecordedPosition),
/// the learning rate.
///
/// The memory that recorded pieces use is reserved for them while a step runs. Between steps others may take
/// it before the arena grows; if some of it is still in use at the next step, that step runs unrecorded, and
/// its kind is recorded anew.
class RecordedSteps {
 public:
  /// @param wanted  false: no step is recorded.
  /// Collective.
  RecordedSteps(Context& context, Communicator& world, bool wanted);
  ~RecordedSteps();
  RecordedSteps(const RecordedSteps&) = delete;
  RecordedSteps& operator=(const RecordedSteps&) = delete;

  /// A step begins, whose batches are alike in shapes. Collective.
  /// @param alone  it runs unrecorded, even if its kind is recorded.
  void begin(std::int64_t step, const Batch& batch, bool alone);
  /// The batch of the next piece, where that reads it.
  const Batch& input(const Batch& batch);
  /// The next piece of the step: runs or records `work`, or replays it. What later pieces read of it must
  /// stand in arrays that are held until the step ends.
  /// @param what  it is, for errors: "the update".
  void piece(const std::string& what, const std::function<void()>& work);
  /// The same for the first piece. Where some rank cannot record it, `forget` undoes what `work` has done on
  /// the host, all ranks run it unrecorded, and no step is recorded from then on. Where it is a call of NCCL
  /// that is not recorded the run ends, for its communicators have failed with it. Collective.
  void first_piece(const std::string& what, const std::function<void()>& work,
                   const std::function<void()>& forget);
  void end();

  /// Whether the step that ended last ran as recorded work.
  bool recorded() const { return mode_ == Mode::kRecord || mode_ == Mode::kReplay; }
  /// Why steps are no longer recorded; said once, then "".
  std::string take_remark() { return std::exchange(remark_, {}); }

 private:
  /// Ordered: all ranks take the least that any of them wants. After kEnd no step is recorded.
  enum class Mode : std::uint8_t { kEnd, kPlain, kRecord, kReplay };
  struct Piece {
    std::string what;
    std::shared_ptr<DeviceRuntime::Recording> recording;
    Tally work;       ///< as the host counts it
    Traffic traffic;  ///< but for seconds
    std::vector<CallLog::Entry> calls;
    std::int64_t replays = 0;
  };
  struct Kind {
    std::vector<Piece> pieces;  ///< none until it is recorded
    std::int64_t step = 0;      ///< that was recorded
    int plain = 0;              ///< steps that ran unrecorded
    bool ready = false;         ///< the last of them can be recorded
  };

  Mode wanted_mode(const Batch& batch);
  void hold_input(const Batch& batch);
  void run_plain(const std::function<void()>& work);
  Piece record(const std::string& what, const std::function<void()>& work);
  Piece must_record(const std::string& what, const std::function<void()>& work);
  std::optional<Piece> try_record(const std::string& what, const std::function<void()>& work);
  void put_in(Piece piece);
  void replay_next();
  void replay(Piece& piece);
  void log_calls(Piece& piece);
  void forget_all();
  void end_recording();

  Context& context_;
  Communicator& world_;
  bool records_;
  std::map<std::string, Kind> kinds_;
  Kind* kind_ = nullptr;  ///< of the step that runs
  Mode mode_ = Mode::kPlain;
  std::size_t next_ = 0;                 ///< piece
  Batch input_;                          ///< the copy, of the step's kind
  std::map<std::string, Array> inputs_;  ///< what copies of all kinds are made of, by part and shape
  Array steps_later_;
  MemoryUse use_;                ///< of all kinds
  int forgotten_ = 0;            ///< recordings that were lost, but for long ago
  std::int64_t since_lost_ = 0;  ///< steps that were replayed
  std::string why_not_, remark_;
};

}  // namespace jigsaw::inline train
