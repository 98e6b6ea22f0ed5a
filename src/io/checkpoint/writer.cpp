#include "checkpoint/writer.h"

#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include "array/transfer.h"
#include "base/error.h"
#include "base/file.h"
#include "base/heartbeat.h"
#include "base/start_thread.h"
#include "base/text.h"
#include "base/trace.h"
#include "checkpoint/save_phase.h"
#include "checkpoint/size.h"
#include "comm/agreement.h"

namespace jigsaw::inline checkpoint {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <typename T>
bool is_ready(const std::future<T>& future) {
  return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

}  // namespace

CheckpointWriter::CheckpointWriter(std::string folder, Retention retention, Communicator& communicator)
    : folder_(std::move(folder)), retention_(std::move(retention)), communicator_(communicator) {
  require(retention_.keep >= 1, "of checkpoints at least one is kept");
}

CheckpointWriter::~CheckpointWriter() {
  ends_ = true;
  if (shard_.valid()) shard_.wait();
  if (committed_.valid()) committed_.wait();
  if (retiring_.valid()) retiring_.wait();
  if (busy() && communicator_.rank() == 0) CheckpointFolder::abandon(temporary_);
}

std::optional<SaveOutcome> CheckpointWriter::start(const CheckpointManifest& manifest,
                                                   const std::vector<CheckpointPiece>& pieces) {
  require(!busy(), "a checkpoint is saved while another one is");
  started_ = now();
  manifest_ = manifest;
  const std::int64_t bytes = checkpoint_bytes(pieces, communicator_);
  settle();  // what goes makes room for what comes
  const std::string failure = first_failure(communicator_, [&] {
    if (communicator_.rank() == 0) temporary_ = folder_.begin(manifest.step, bytes);
  });
  if (!failure.empty()) return end("", failure);
  temporary_ = communicator_.broadcast_text(temporary_);
  if (!start_copy(pieces)) copy(pieces);
  stage_ = Stage::kWriting;
  start_write();
  return std::nullopt;
}

/// Where the system has no thread for it, that is the failure of this rank's shard.
void CheckpointWriter::start_write() {
  try {
    start_thread("to save a checkpoint", [&] {
      shard_ =
          std::async(std::launch::async, [this, heartbeat = current_heartbeat(), trace = current_trace()] {
            const WorksFor rank(heartbeat);
            const TracesFor traced(trace, "saving");
            wait_for_copy();
            const TraceSpan span(TraceKind::kPhase, "write a shard");
            return write();
          });
    });
  } catch (const Error&) {
    if (!copy_.passed()) communicator_.context().runtime()->synchronise(Stream::kDownload);
    std::promise<ShardRecord> failed;
    failed.set_exception(std::current_exception());
    shard_ = failed.get_future();
  }
}

void CheckpointWriter::copied() {
  if (copying_.empty()) return;
  DeviceRuntime& runtime = *communicator_.context().runtime();
  runtime.wait(Stream::kCompute, runtime.ticket(Stream::kDownload));
  copying_.clear();
}

/// On the thread that writes, which asks nothing of the device.
void CheckpointWriter::wait_for_copy() const {
  constexpr std::chrono::milliseconds kLook(1);
  for (; !copy_.passed(); std::this_thread::sleep_for(kLook)) {
    if (ends_) fail("the state was not copied from the device");
  }
}

namespace {

/// The same pieces in one array per type, which the arena keeps for the next save: fresh pages would cost
/// more than the copying.
std::vector<CheckpointPiece> places_for(const std::vector<CheckpointPiece>& pieces, const Context& host) {
  std::map<DType, std::int64_t> counts;
  for (const CheckpointPiece& piece : pieces) counts[piece.array.dtype()] += piece.array.count();
  std::map<DType, Array> buffers;
  for (const auto& [dtype, count] : counts) buffers[dtype] = Array(host, {count}, dtype, Purpose::kWorkspace);
  std::map<DType, std::int64_t> at;
  std::vector<CheckpointPiece> places = pieces;
  for (CheckpointPiece& place : places) {
    const DType dtype = place.array.dtype();
    const std::int64_t count = place.array.count();
    place.array = buffers[dtype].slice(at[dtype], place.array.shape());
    at[dtype] += count;
  }
  return places;
}

}  // namespace

void CheckpointWriter::copy(const std::vector<CheckpointPiece>& pieces) {
  pieces_ = places_for(pieces, communicator_.context().host());
  for (std::size_t i = 0; i < pieces.size(); ++i)
    download_into(communicator_.context(), pieces[i].array, pieces_[i].array);
}

/// Beside what the device computes next, into page-locked memory. @return  whether it does, which takes a
/// device, and a host that has so much of it
bool CheckpointWriter::start_copy(const std::vector<CheckpointPiece>& pieces) {
  copy_ = {};
  Context& context = communicator_.context();
  DeviceRuntime* const runtime = context.runtime();
  if (runtime == nullptr) return false;
  if (!page_locked_) page_locked_.emplace(Backend::kReference, runtime->page_locked(), 1);
  try {
    pieces_ = places_for(pieces, *page_locked_);
  } catch (const Error&) {
    return false;
  }
  copying_ = pieces;
  runtime->wait(Stream::kDownload, runtime->ticket(Stream::kCompute));
  const StreamScope copies(context, Stream::kDownload);
  for (std::size_t i = 0; i < pieces.size(); ++i)
    start_download_into(context, pieces[i].array, pieces_[i].array);
  copy_ = runtime->milestone(Stream::kDownload);
  if (!copy_.counted()) runtime->synchronise(Stream::kDownload);  // the thread that writes could not tell
  return true;
}

/// On this rank's thread.
ShardRecord CheckpointWriter::write() {
  const int rank = communicator_.rank();
  reached(SavePhase::kCopied, rank);
  ShardRecord shard = write_shard(temporary_, shard_name(static_cast<std::size_t>(rank)), pieces_,
                                  [rank] { reached(SavePhase::kShardHalf, rank); });
  sync_folder(temporary_);
  reached(SavePhase::kShardSynced, rank);
  return shard;
}

/// On rank 0's thread.
CheckpointWriter::Committed CheckpointWriter::commit(const std::vector<std::string>& records) {
  Committed result;
  try {
    std::vector<ShardRecord> shards;
    for (const std::string& record : records) {
      shards.push_back(read_shards(Json::parse(record), false).front());
    }
    result.path = folder_.commit(temporary_, manifest_, shards);
    folder_.name_latest(result.path);
    result.failure = std::exchange(retired_.failure, "");
  } catch (const std::exception& error) {
    result.failure = error.what();
  }
  return result;
}

/// On the same thread, when all ranks may know that the checkpoint stands.
CheckpointWriter::Retired CheckpointWriter::retire(const std::string& path) {
  Retired result;
  const double before = now();
  try {
    if (!path.empty()) folder_.retire(path, retention_);
  } catch (const std::exception& error) {
    result.failure = error.what();
  }
  result.seconds = now() - before;
  return result;
}

double CheckpointWriter::settle() {
  if (retiring_.valid()) retired_ = retiring_.get();
  return retired_.seconds;
}

std::optional<SaveOutcome> CheckpointWriter::finish() {
  std::optional<SaveOutcome> outcome = advance(true);
  settle();
  if (!outcome) return outcome;
  const std::string failure = communicator_.broadcast_text(std::exchange(retired_.failure, ""));
  if (outcome->failure.empty()) outcome->failure = failure;
  return outcome;
}

std::optional<SaveOutcome> CheckpointWriter::advance(bool wait) {
  if (wait) copied();
  if (!busy()) return std::nullopt;
  if (wait && !copy_.passed()) communicator_.context().runtime()->synchronise(Stream::kDownload);
  const auto ready = [&](const auto& future) {
    if (wait && future.valid()) future.wait();
    const double mine = !future.valid() || is_ready(future) ? 1 : 0;
    return communicator_.all_reduce(std::array{mine}, ReduceOp::kMin)[0] > 0;
  };
  if (stage_ == Stage::kWriting && ready(shard_)) {
    begin_commit();
    if (!failure_.empty()) return end("", failure_);
  }
  if (stage_ != Stage::kCommitting || !ready(committed_)) return std::nullopt;
  const Committed mine = committed_.valid() ? committed_.get() : Committed{};
  const std::string path = communicator_.broadcast_text(mine.path);
  return end(path, communicator_.broadcast_text(mine.failure));
}

/// All shards are written, or one failed.
void CheckpointWriter::begin_commit() {
  ShardRecord shard;
  failure_ = first_failure(communicator_, [&] { shard = shard_.get(); });
  pieces_.clear();
  if (!failure_.empty()) return;
  const std::vector<std::string> records = communicator_.gather_text(describe_shards({shard}).dump());
  reached(SavePhase::kAgreed, communicator_.rank());
  stage_ = Stage::kCommitting;
  if (communicator_.rank() != 0) return;
  auto stands = std::make_shared<std::promise<Committed>>();
  committed_ = stands->get_future();
  try {
    start_thread("to save a checkpoint", [&] {
      retiring_ = std::async(std::launch::async, [this, stands, records, heartbeat = current_heartbeat(),
                                                  trace = current_trace()] {
        const WorksFor rank(heartbeat);
        const TracesFor traced(trace, "saving");
        const TraceSpan span(TraceKind::kPhase, "commit a checkpoint");
        const Committed committed = commit(records);
        stands->set_value(committed);
        return retire(committed.path);
      });
    });
  } catch (const Error& error) {
    stands->set_value(Committed{"", error.what()});
  }
}

SaveOutcome CheckpointWriter::end(const std::string& path, const std::string& failure) {
  stage_ = Stage::kIdle;
  if (path.empty() && communicator_.rank() == 0) CheckpointFolder::abandon(temporary_);
  return {manifest_.step, path, failure, now() - started_};
}

SaveOutcome save_checkpoint(const std::string& folder, const CheckpointManifest& manifest,
                            const std::vector<CheckpointPiece>& pieces, Communicator& communicator,
                            const Retention& retention) {
  CheckpointWriter writer(folder, retention, communicator);
  std::optional<SaveOutcome> outcome = writer.start(manifest, pieces);
  if (!outcome) outcome = writer.finish();
  if (!outcome->saved()) {
    throw CheckpointError(
        concat("the checkpoint of step ", manifest.step, " cannot be saved: ", outcome->failure));
  }
  return *outcome;
}

}  // namespace jigsaw::inline checkpoint
