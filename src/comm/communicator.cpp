#include "comm/communicator.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "array/transfer.h"
#include "base/error.h"
#include "base/heartbeat.h"
#include "base/text.h"
#include "base/trace.h"
#include "comm/call_hook.h"

namespace jigsaw::inline comm {

namespace {

/// Adds the time it lives to a sum of seconds.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  ~Stopwatch() {
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& seconds_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

class Ready : public Pending::Operation {
 public:
  explicit Ready(Array result) : result_(std::move(result)) {}
  Array wait() override { return std::move(result_); }
  bool poll() override { return true; }

 private:
  Array result_;
};

std::int64_t sum(const std::vector<std::int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

std::vector<std::int64_t> to_vector(std::span<const std::int64_t> counts) {
  return {counts.begin(), counts.end()};
}

/// Messages of a rank to itself.
std::vector<Message> own_messages(const std::vector<Message>& messages, int rank) {
  std::vector<Message> own;
  std::copy_if(messages.begin(), messages.end(), std::back_inserter(own),
               [rank](const Message& message) { return message.peer == rank; });
  return own;
}

}  // namespace

Array Pending::wait() {
  require(valid(), "a collective is waited for once");
  const std::unique_ptr<Operation> operation = std::move(operation_);
  return operation->wait();
}

double Traffic::total_bytes() const {
  return std::accumulate(sent_bytes.begin(), sent_bytes.end(), 0.0);
}

/// A backend's operation with its time measured and its state in the log.
class Communicator::Logged : public Pending::Operation {
 public:
  /// @param started  how the call was traced, or null.
  Logged(std::unique_ptr<Pending::Operation> operation, std::shared_ptr<Ledger> ledger, std::int64_t number,
         const TraceEvent* started)
      : operation_(std::move(operation)), ledger_(std::move(ledger)), number_(number) {
    if (started != nullptr) transfer_ = std::make_unique<TraceEvent>(*started);
  }
  ~Logged() override {
    operation_.reset();
    ledger_->log.set_state(number_, CallLog::State::kDone);
  }

  Array wait() override {
    const Stopwatch stopwatch(ledger_->traffic.seconds);
    const Stopwatch waiting(ledger_->traffic.wait_seconds);
    ledger_->log.set_state(number_, CallLog::State::kWaiting);
    TraceSpan span(TraceKind::kWait, transfer_ ? transfer_->name : "what was started before");
    Array result = operation_->wait();
    if (TraceEvent* event = span.event(); event != nullptr && transfer_) {
      event->layer = transfer_->layer;
      event->number = number_;
      transfer_->kind = TraceKind::kTransfer;
      transfer_->end = trace_now();
      trace_lane->trace->add(*trace_lane, *transfer_);
    }
    beat();
    return result;
  }
  bool poll() override {
    const Stopwatch stopwatch(ledger_->traffic.seconds);
    return operation_->poll();
  }

 private:
  std::unique_ptr<Pending::Operation> operation_;
  std::shared_ptr<Ledger> ledger_;
  std::int64_t number_;
  std::unique_ptr<TraceEvent> transfer_;  ///< null where nothing is traced
};

/// An operation on host memory for arrays that stand on a device. Keeps what is sent there, from which the
/// device may still copy.
class Communicator::Staged : public Pending::Operation {
 public:
  Staged(Array sent, std::unique_ptr<Pending::Operation> operation, const Context& context, Purpose purpose)
      : sent_(std::move(sent)), operation_(std::move(operation)), context_(context), purpose_(purpose) {}

  Array wait() override {
    const Array result = operation_->wait();
    sent_ = Array();
    return upload(context_, result, purpose_);
  }
  bool poll() override { return operation_->poll(); }

 private:
  Array sent_;
  std::unique_ptr<Pending::Operation> operation_;
  const Context& context_;
  Purpose purpose_;
};

Communicator::Communicator(Context& context)
    : context_(&context),
      ledger_(std::make_shared<Ledger>()),
      label_("world"),
      whole_job_(true),
      sequence_(&ledger_->sequences.emplace_back()) {}

Communicator::Communicator(const Communicator& parent, std::string label)
    : context_(parent.context_),
      ledger_(parent.ledger_),
      label_(std::move(label)),
      whole_job_(false),
      sequence_(&ledger_->sequences.emplace_back()) {}

Communicator::Communicator(SameRanks, const Communicator& other)
    : context_(other.context_),
      ledger_(other.ledger_),
      label_(other.label_),
      whole_job_(other.whole_job_),
      sequence_(&ledger_->sequences.emplace_back(*other.sequence_)) {}

std::unique_ptr<Communicator> Communicator::split(const std::string& label,
                                                  const ColorAndKey& color_and_key) {
  const int color = color_and_key(rank()).first;
  std::vector<std::pair<int, int>> ordered;  // key, rank
  for (int other = 0; other < size(); ++other) {
    const auto [its_color, key] = color_and_key(other);
    if (its_color == color) ordered.emplace_back(key, other);
  }
  std::sort(ordered.begin(), ordered.end());
  std::vector<int> members;
  for (const auto& [key, other] : ordered) members.push_back(other);
  return do_split(label, members, (*sequence_)++);
}

Pending Communicator::start_all_gather(const Array& send, std::span<const std::int64_t> counts,
                                       Purpose purpose, Urgency urgency) {
  Call call{.kind = Collective::kAllGather, .send = send, .counts = to_vector(counts), .urgency = urgency};
  check_pieces(call, send.count());
  call.result_shape = {sum(call.counts)};
  call.result_purpose = purpose;
  call.sent_bytes = static_cast<double>(send.bytes()) * (size() - 1);
  return start(std::move(call));
}

Pending Communicator::start_reduce_scatter(const Array& send, std::span<const std::int64_t> counts,
                                           ReduceOp op, Purpose purpose, Urgency urgency) {
  Call call{.kind = Collective::kReduceScatter,
            .op = op,
            .send = send,
            .counts = to_vector(counts),
            .urgency = urgency};
  check_pieces(call, sum(call.counts));
  const std::int64_t own = counts[static_cast<std::size_t>(rank())];
  call.result_shape = {own};
  call.result_purpose = purpose;
  call.sent_bytes = static_cast<double>((send.count() - own) * size_of(send.dtype()));
  return start(std::move(call));
}

Pending Communicator::start_all_reduce(const Array& send, ReduceOp op, Purpose purpose, Urgency urgency) {
  Call call{.kind = Collective::kAllReduce,
            .op = op,
            .send = send,
            .result_shape = send.shape(),
            .result_purpose = purpose,
            .urgency = urgency};
  call.sent_bytes = 2.0 * (size() - 1) / size() * static_cast<double>(send.bytes());
  return start(std::move(call));
}

Pending Communicator::start_all_to_all(const Array& send, std::span<const std::int64_t> send_counts,
                                       std::span<const std::int64_t> receive_counts, std::int64_t block) {
  Call call{.kind = Collective::kAllToAll,
            .send = send,
            .counts = to_vector(send_counts),
            .receive_counts = to_vector(receive_counts),
            .block = block};
  check_pieces(call, sum(call.counts));
  for (const auto* counts : {&call.counts, &call.receive_counts}) {
    const std::int64_t most = block > 0 ? *std::max_element(counts->begin(), counts->end()) : 0;
    if (most > block) refuse(call, concat("a count of ", most, " is above the block of ", block));
  }
  const auto own = static_cast<std::size_t>(rank());
  if (call.counts[own] != call.receive_counts[own]) {
    refuse(call, concat("it sends ", call.counts[own], " elements to itself and expects ",
                        call.receive_counts[own]));
  }
  call.result_shape = {sum(call.receive_counts)};
  call.sent_bytes = static_cast<double>((send.count() - call.counts[own]) * size_of(send.dtype()));
  return start(std::move(call));
}

Pending Communicator::start_broadcast(const Array& send, int root) {
  Call call{.kind = Collective::kBroadcast, .root = root, .send = send, .result_shape = send.shape()};
  if (root < 0 || root >= size()) refuse(call, concat("rank ", root, " cannot be the root"));
  if (root == rank()) call.sent_bytes = static_cast<double>(send.bytes()) * (size() - 1);
  return start(std::move(call));
}

Pending Communicator::start_exchange(const Array& send, std::span<const Message> sends,
                                     std::span<const Message> receives, std::int64_t receive_count) {
  Call call{.kind = Collective::kExchange,
            .send = send,
            .result_shape = {receive_count},
            .sends = {sends.begin(), sends.end()},
            .receives = {receives.begin(), receives.end()}};
  for (const Message& message : call.sends) check_message(call, message, send.count());
  for (const Message& message : call.receives) check_message(call, message, receive_count);
  const std::vector<Message> out = own_messages(call.sends, rank());
  const std::vector<Message> in = own_messages(call.receives, rank());
  if (!std::equal(out.begin(), out.end(), in.begin(), in.end(),
                  [](const Message& a, const Message& b) { return a.count == b.count; })) {
    refuse(call, "its messages to itself are not those it expects of itself");
  }
  for (const Message& message : call.sends) {
    if (message.peer != rank()) {
      call.sent_bytes += static_cast<double>(message.count * size_of(send.dtype()));
    }
  }
  return start(std::move(call));
}

std::vector<double> Communicator::all_reduce(std::span<const double> values, ReduceOp op) {
  Call call{.kind = Collective::kControl, .op = op, .control = Control::kReduce};
  call.values.assign(values.begin(), values.end());
  return control(std::move(call)).values;
}

std::vector<std::string> Communicator::gather_text(std::string text, int root) {
  Call call{.kind = Collective::kControl, .root = root, .control = Control::kGather};
  call.texts.push_back(std::move(text));
  call = control(std::move(call));
  if (rank() != root) return {};
  return std::move(call.texts);
}

std::string Communicator::scatter_text(std::vector<std::string> texts, int root) {
  Call call{.kind = Collective::kControl, .root = root, .control = Control::kScatter};
  if (rank() == root) {
    require(std::ssize(texts) == size(), "the root scatters one text per rank");
    call.texts = std::move(texts);
  }
  return std::move(control(std::move(call)).texts.front());
}

std::string Communicator::broadcast_text(std::string text, int root) {
  Call call{.kind = Collective::kControl, .root = root, .control = Control::kBroadcast};
  if (rank() == root) call.texts.push_back(std::move(text));
  return std::move(control(std::move(call)).texts.front());
}

void Communicator::barrier() {
  all_reduce(std::span<const double>{}, ReduceOp::kSum);
}

Traffic& Communicator::traffic() const {
  Traffic& traffic = ledger_->traffic;
  if (context_->runtime() != nullptr) {
    const double stalled = context_->runtime()->take_stalled_seconds();
    traffic.seconds += stalled;
    traffic.wait_seconds += stalled;
  }
  return traffic;
}

void Communicator::forget_calls(const CallsSoFar& since) {
  require(since.sequences.size() == ledger_->sequences.size(),
          "calls are forgotten of groups that are no more");
  Traffic traffic = since.traffic;
  const Traffic& now = ledger_->traffic;  // time has gone by all the same
  traffic.seconds = now.seconds;
  traffic.wait_seconds = now.wait_seconds;
  traffic.control_seconds = now.control_seconds;
  ledger_->traffic = traffic;
  ledger_->log.forget(since.log);
  std::ranges::copy(since.sequences, ledger_->sequences.begin());
}

Pending Communicator::start(Call call) {
  require(call.send.defined(), "a collective needs an array to send");
  if (call.send.device() != context_->device()) refuse(call, "the array is not on the rank's device");
  const bool reduces = call.kind == Collective::kReduceScatter || call.kind == Collective::kAllReduce;
  if (reduces && call.send.dtype() == DType::kBfloat16)
    refuse(call, "bf16 is not reduced; cast to fp32 first");
  call.sequence = (*sequence_)++;
  const std::int64_t number = call.number = ledger_->log.begin(label_, whole_job_, call);
  call_begins(*this, number);
  const Reach takes = reach(call);
  const bool alone = size() == 1 && !takes.groups_of_one;
  if (alone || nothing_travels(call)) {
    // Other groups of the same call may send something: recorded work counts this one, too, so that logs stay
    // equal.
    if (context_->runtime() != nullptr && records()) ledger_->log.set_on_device(number, {});
    ledger_->log.set_state(number, CallLog::State::kDone);
    return Pending(std::make_unique<Ready>(local_result(call)));
  }
  const auto kind = static_cast<std::size_t>(call.kind);
  ledger_->traffic.sent_bytes[kind] += call.sent_bytes;
  ledger_->traffic.calls[kind] += 1;
  double hidden = 0;  // while a device computes
  const Stopwatch stopwatch(takes.device && records() ? hidden : ledger_->traffic.seconds);
  TraceSpan span(TraceKind::kStart, name(call.kind));
  if (TraceEvent* event = span.event()) {
    event->layer = label_;
    event->bytes = call.sent_bytes;
    event->number = number;
  }
  const Purpose purpose = call.result_purpose;
  const bool staged = context_->runtime() != nullptr && !takes.device;
  const Array sent = call.send;
  if (staged) stage(call, takes.arrivals);
  ledger_->log.set_state(number, CallLog::State::kWaiting);
  std::unique_ptr<Pending::Operation> operation = do_start(std::move(call));
  if (const OnDevice* const device = operation->on_device()) {
    ledger_->log.set_on_device(number, *device);
    beat();
    return Pending(std::move(operation));
  }
  ledger_->log.set_state(number, CallLog::State::kStarted);
  operation = std::make_unique<Logged>(std::move(operation), ledger_, number, span.event());
  if (staged) operation = std::make_unique<Staged>(sent, std::move(operation), *context_, purpose);
  return Pending(std::move(operation));
}

void Communicator::stage(Call& call, bool arrives) {
  DeviceRuntime& runtime = *context_->runtime();
  std::optional<Context>& page_locked = ledger_->page_locked;
  Array host;
  if (arrives) {
    if (!page_locked) page_locked.emplace(Backend::kReference, runtime.page_locked(), 1);
    try {
      host = Array(*page_locked, call.send.shape(), call.send.dtype(), Purpose::kWorkspace);
    } catch (const Error&) {
      // No more page-locked memory: the host waits for the copy, below.
    }
  }
  if (!host.defined()) {
    call.send = download(*context_, call.send);
    return;
  }
  constexpr Stream kCopies = Stream::kCommunication;
  runtime.wait(kCopies, runtime.ticket(context_->stream()));
  {
    const StreamScope copies(*context_, kCopies);
    start_download_into(*context_, call.send, host);
  }
  call.arrival.emplace(runtime, kCopies);
  call.send = host;
}

Call Communicator::control(Call call) {
  call.sequence = (*sequence_)++;
  require(call.root >= 0 && call.root < size(), "the root of a control call is a rank of the group");
  const std::int64_t number = ledger_->log.begin(label_, whole_job_, call);
  call_begins(*this, number);
  ledger_->log.set_state(number, CallLog::State::kWaiting);
  const Stopwatch stopwatch(ledger_->traffic.control_seconds);
  TraceSpan span(TraceKind::kControl, jigsaw::name(call.control));
  if (TraceEvent* event = span.event()) {
    event->layer = label_;
    event->number = number;
  }
  if (size() > 1) call = do_control(std::move(call));
  ledger_->log.set_state(number, CallLog::State::kDone);
  beat();
  return call;
}

/// The counts name every rank, are not negative, and fit the sent array.
void Communicator::check_pieces(const Call& call, std::int64_t own_or_whole) const {
  const auto check = [&](const std::vector<std::int64_t>& counts) {
    if (std::ssize(counts) != size()) {
      refuse(call, concat("there are ", counts.size(), " counts for ", size(), " ranks"));
    }
    if (std::any_of(counts.begin(), counts.end(), [](std::int64_t count) { return count < 0; })) {
      refuse(call, concat("a count of ", join(counts, ", "), " is negative"));
    }
  };
  check(call.counts);
  if (call.kind == Collective::kAllToAll) check(call.receive_counts);
  const std::int64_t wanted =
      call.kind == Collective::kAllGather ? call.counts[static_cast<std::size_t>(rank())] : own_or_whole;
  if (wanted != call.send.count()) {
    refuse(call, concat("the counts ", join(call.counts, ", "), " want an array of ", wanted, " elements"));
  }
}

void Communicator::check_message(const Call& call, const Message& message, std::int64_t available) const {
  const bool fits = message.peer >= 0 && message.peer < size() && message.first >= 0 && message.count >= 0 &&
                    message.first + message.count <= available;
  if (!fits) {
    refuse(call, concat("a message of ", message.count, " elements from ", message.first, " on with rank ",
                        message.peer, " does not fit ", available, " elements and ", size(), " ranks"));
  }
}

void Communicator::refuse(const Call& call, const std::string& why) const {
  throw CommError(concat(name(call.kind), " of ", call.send.count(), " ", jigsaw::name(call.send.dtype()),
                         " by rank ", rank(), " of ", label_, ": ", why));
}

/// Follows from counts that all ranks know, so that all decide alike.
bool Communicator::nothing_travels(const Call& call) const {
  return call.kind != Collective::kAllToAll && call.kind != Collective::kExchange && call.global_count() == 0;
}

/// The result of a call in which nothing leaves the rank.
Array Communicator::local_result(const Call& call) const {
  if (call.kind != Collective::kExchange) return call.send.reshaped(call.result_shape);
  Array result(*context_, call.result_shape, call.send.dtype());
  for (std::size_t i = 0; i < call.sends.size(); ++i) {
    copy_elements(*context_, call.send, call.sends[i].first, result, call.receives[i].first,
                  call.sends[i].count);
  }
  return result;
}

}  // namespace jigsaw::inline comm
