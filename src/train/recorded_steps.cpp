#include "train/recorded_steps.h"

#include <algorithm>
#include <array>
#include <utility>

#include "array/recorded_position.h"
#include "array/transfer.h"
#include "autograd/operation_span.h"
#include "base/error.h"
#include "base/text.h"
#include "base/trace.h"
#include "comm/agreement.h"

namespace jigsaw::inline train {

namespace {

/// More are no steady state: kinds of steps, recordings that were lost, and steps of a kind until one is
/// ready.
constexpr std::size_t kMostKinds = 16;
constexpr int kMostForgotten = 4, kMostPlain = 8;
/// After so many replays a loss is forgotten.
constexpr std::int64_t kLongAgo = 100;

std::string kind_of(const Batch& batch) {
  std::string text = concat(batch.rollout);
  Batch::for_each_array(batch, [&](const Array& array) {
    text += array.defined() ? concat("; ", name(array.dtype()), " ", array.shape()) : "; none";
  });
  return text;
}

/// What came to a counter since.
Traffic difference(const Traffic& now, const Traffic& before) {
  Traffic traffic;
  for (std::size_t i = 0; i < now.calls.size(); ++i) {
    traffic.calls[i] = now.calls[i] - before.calls[i];
    traffic.sent_bytes[i] = now.sent_bytes[i] - before.sent_bytes[i];
  }
  for (std::size_t i = 0; i < now.sent.size(); ++i) {
    traffic.sent[i] = {now.sent[i].messages - before.sent[i].messages,
                       now.sent[i].bytes - before.sent[i].bytes};
  }
  return traffic;
}

void add(Traffic& traffic, const Traffic& more) {
  for (std::size_t i = 0; i < more.calls.size(); ++i) {
    traffic.calls[i] += more.calls[i];
    traffic.sent_bytes[i] += more.sent_bytes[i];
  }
  for (std::size_t i = 0; i < more.sent.size(); ++i) traffic.sent[i] += more.sent[i];
}

/// An error in work that was being recorded, of which there is no way back.
[[noreturn]] void fail_recording(const Error& error) {
  const std::string text =
      concat("in work that is recorded as a CUDA graph (\"train\": {\"graphs\": false} trains without): ",
             error.what());
  if (dynamic_cast<const CommError*>(&error) != nullptr) throw CommError(text);
  throw Error(error.code(), text);
}

}  // namespace

RecordedSteps::RecordedSteps(Context& context, Communicator& world, bool wanted)
    : context_(context), world_(world), records_(wanted && context.runtime() != nullptr) {
  if (!records_) return;
  records_ = context.runtime()->records() && world.records();
  // Environments of ranks may differ.
  if (world.size() > 1) records_ = world.all_reduce(std::array{records_ ? 1.0 : 0.0}, ReduceOp::kMin)[0] > 0;
  if (records_) steps_later_ = constant(context, {1}, DType::kFloat64, std::array{0.0}, Purpose::kOptimizer);
}

RecordedSteps::~RecordedSteps() {
  if (records_) context_.arena().set_aside({});
}

void RecordedSteps::begin(std::int64_t step, const Batch& batch, bool alone) {
  mode_ = Mode::kPlain;
  kind_ = nullptr;
  next_ = 0;
  if (!records_ || alone || tracing()) return;
  kind_ = &kinds_[kind_of(batch)];
  mode_ = wanted_mode(batch);
  if (world_.size() > 1) {
    const auto mine = static_cast<double>(static_cast<int>(mode_));
    mode_ = static_cast<Mode>(static_cast<int>(world_.all_reduce(std::array{mine}, ReduceOp::kMin)[0]));
  }
  if (mode_ == Mode::kEnd) return end_recording();
  if (mode_ == Mode::kPlain) {
    ++kind_->plain;
    kind_->ready = true;  // until it shows that it is not
    context_.arena().set_aside({});
    return;
  }
  if (mode_ == Mode::kRecord) {
    kind_->pieces.clear();
    kind_->step = step;
  }
  write_values(context_, steps_later_, std::array{static_cast<double>(step - kind_->step)});
}

/// What this rank would do.
RecordedSteps::Mode RecordedSteps::wanted_mode(const Batch& batch) {
  if (kinds_.size() > kMostKinds)
    why_not_ = concat("batches are of more than ", kMostKinds, " shapes and lengths of rollouts");
  if (kind_->plain >= kMostPlain && !kind_->ready) why_not_ = "the host takes part in each";
  if (!kind_->pieces.empty() && !context_.arena().set_aside(use_)) {
    forget_all();
    return why_not_.empty() ? Mode::kPlain : Mode::kEnd;
  }
  if (why_not_.empty() && kind_->pieces.empty() && !kind_->ready) return Mode::kPlain;
  // What the copy stands in is not what other kinds have recorded.
  if (kind_->pieces.empty()) context_.arena().set_aside(use_);
  try {
    hold_input(batch);
  } catch (const Error& error) {
    why_not_ = concat("a copy of the batch does not fit: ", error.what());
  }
  if (!why_not_.empty()) return Mode::kEnd;
  return kind_->pieces.empty() ? Mode::kRecord : Mode::kReplay;
}

const Batch& RecordedSteps::input(const Batch& batch) {
  if (!recorded()) return batch;
  hold_input(batch);
  std::vector<Array> places;
  Batch::for_each_array(input_, [&](Array& array) { places.push_back(array); });
  auto place = places.begin();
  Batch::for_each_array(batch, [&](const Array& array) {
    if (array.defined()) copy_elements(context_, array, 0, *place, 0, array.count());
    ++place;
  });
  return input_;
}

/// input_ gets arrays like those of the batch, which stay where they are: recorded work of each kind reads
/// them there.
void RecordedSteps::hold_input(const Batch& batch) {
  input_ = batch;
  const std::size_t targets = batch.targets.size(), forcings = batch.forcings.size();
  constexpr std::size_t kSingle = 4;  // arrays before the lists
  std::size_t next = 0;
  Batch::for_each_array(input_, [&](Array& array) {
    const std::size_t number = next++;
    if (!array.defined()) return;
    const std::size_t in_lists = number - kSingle;
    const std::string part = number < kSingle                ? concat("array ", number)
                             : in_lists < targets            ? concat("target ", in_lists)
                             : in_lists < targets + forcings ? concat("forcing ", in_lists - targets)
                                                             : concat("rim ", in_lists - targets - forcings);
    Array& place = inputs_[concat(part, " ", name(array.dtype()), " ", array.shape())];
    if (!place.defined()) place = Array(context_, array.shape(), array.dtype(), Purpose::kInput);
    array = place;
  });
}

void RecordedSteps::piece(const std::string& what, const std::function<void()>& work) {
  switch (mode_) {
    case Mode::kEnd:
    case Mode::kPlain:
      return run_plain(work);
    case Mode::kRecord:
      return put_in(must_record(what, work));
    case Mode::kReplay:
      return replay_next();
  }
}

void RecordedSteps::first_piece(const std::string& what, const std::function<void()>& work,
                                const std::function<void()>& forget) {
  if (mode_ != Mode::kRecord) return piece(what, work);
  if (std::optional<Piece> piece = try_record(what, work)) return put_in(*std::move(piece));
  mode_ = Mode::kPlain;
  forget();
  run_plain(work);
}

void RecordedSteps::put_in(Piece piece) {
  kind_->pieces.push_back(std::move(piece));
  replay(kind_->pieces.back());
}

void RecordedSteps::run_plain(const std::function<void()>& work) {
  const DeviceRuntime* const runtime = context_.runtime();
  if (kind_ == nullptr || runtime == nullptr) return work();
  const DeviceRuntime::HostSteps before = runtime->host_steps();
  work();
  kind_->ready = kind_->ready && runtime->host_steps() == before;
}

/// Of the calls within none has been made when this returns, for none has run.
RecordedSteps::Piece RecordedSteps::record(const std::string& what, const std::function<void()>& work) {
  DeviceRuntime& runtime = *context_.runtime();
  Arena& arena = context_.arena();
  const Tally tally = context_.tally();
  const Communicator::CallsSoFar calls = world_.calls_so_far();
  const auto forget = [&] {
    context_.state<RecordedPosition>().steps_later = Array();
    context_.tally() = tally;
    world_.forget_calls(calls);
  };
  Piece piece{what};
  arena.set_aside({});
  arena.note_use();
  try {
    runtime.begin_recording();
    context_.state<RecordedPosition>().steps_later = steps_later_;
    work();
    piece.recording = runtime.end_recording();
  } catch (...) {
    runtime.drop_recording();
    arena.noted_use();
    forget();
    throw;
  }
  use_.add(arena.noted_use());
  arena.set_aside(use_);
  piece.work = {context_.tally().flops - tally.flops, context_.tally().bytes - tally.bytes};
  piece.traffic = difference(world_.traffic(), calls.traffic);
  piece.calls = world_.log()->since_mark();
  forget();
  return piece;
}

/// Ends the run where that fails.
RecordedSteps::Piece RecordedSteps::must_record(const std::string& what, const std::function<void()>& work) {
  try {
    return record(what, work);
  } catch (const PeerError&) {
    throw;
  } catch (const AgreedError&) {
    throw;
  } catch (const Error& error) {
    fail_recording(error);
  }
}

/// Where some rank cannot: nothing, and on none of them anything is left of it. Collective.
std::optional<RecordedSteps::Piece> RecordedSteps::try_record(const std::string& what,
                                                              const std::function<void()>& work) {
  std::optional<Piece> piece;
  std::string failure;
  try {
    piece = record(what, work);
  } catch (const PeerError&) {  // the ranks have nothing left to agree by
    throw;
  } catch (const CommError& error) {
    fail_recording(error);
  } catch (const Error& error) {
    failure = error.what();
  }
  why_not_ = agreed_failure(world_, failure);
  if (why_not_.empty()) return piece;
  context_.arena().set_aside({});
  return std::nullopt;
}

void RecordedSteps::replay_next() {
  require(next_ < kind_->pieces.size(), "a step has more pieces than the one that was recorded");
  replay(kind_->pieces[next_++]);
}

void RecordedSteps::replay(Piece& piece) {
  const std::string operation = concat("replay of ", piece.what);
  const OperationSpan span(context_, operation, "");
  context_.runtime()->replay(*piece.recording);
  context_.tally().flops += piece.work.flops;
  context_.tally().bytes += piece.work.bytes;
  add(world_.traffic(), piece.traffic);
  log_calls(piece);
}

/// As if they had been made anew: of each group they are so many further on as it has in a replay.
void RecordedSteps::log_calls(Piece& piece) {
  std::vector<CallLog::Entry> calls = piece.calls;
  for (CallLog::Entry& call : calls) {
    const auto of_group = std::ranges::count(piece.calls, call.group, &CallLog::Entry::group);
    call.sequence += piece.replays * static_cast<std::int64_t>(of_group);
    for (Milestone* milestone : {&call.device.begun, &call.device.done})
      *milestone = context_.runtime()->again(*milestone, *piece.recording);
  }
  world_.repeat(calls);
  ++piece.replays;
}

void RecordedSteps::end() {
  if (!recorded()) return;
  context_.arena().lend();
  if (mode_ == Mode::kReplay && ++since_lost_ == kLongAgo) forgotten_ = 0;
}

/// What was recorded, of all kinds, for it uses the same memory.
void RecordedSteps::forget_all() {
  for (auto& [text, kind] : kinds_) kind.pieces.clear();
  use_ = {};
  context_.arena().set_aside({});
  ++context_.state<RecordedPosition>().era;
  since_lost_ = 0;
  if (++forgotten_ > kMostForgotten) why_not_ = "others need the memory that they use";
}

/// On all ranks.
void RecordedSteps::end_recording() {
  records_ = false;
  kind_ = nullptr;
  kinds_.clear();
  input_ = {};
  inputs_.clear();
  context_.arena().set_aside({});
  ++context_.state<RecordedPosition>().era;
  remark_ = concat("steps are not recorded as CUDA graphs: ", agreed_failure(world_, why_not_));
}

}  // namespace jigsaw::inline train
