#include "nccl/nccl_communicator.h"

#include <algorithm>
#include <array>
#include <exception>
#include <numeric>
#include <optional>

#include "array/current_work.h"
#include "array/device_times.h"
#include "array/raw_memory.h"
#include "array/transfer.h"
#include "base/error.h"
#include "base/text.h"
#include "comm/reduce.h"
#include "kernels/cuda/error.h"
#include "nccl/group.h"
#include "nccl/sums.h"
#include "nccl/two_levels.h"

namespace jigsaw::inline nccl {

namespace {

ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return ncclFloat32;
    case DType::kFloat64:
      return ncclFloat64;
    case DType::kBfloat16:
      return ncclBfloat16;
  }
  fail("unknown element type");
}

/// Memory of `count` elements of an array from `first` on.
struct Run {
  std::byte* memory;
  std::size_t count;
};
Run run_of(const Array& array, std::int64_t first, std::int64_t count) {
  return {const_cast<std::byte*>(array.raw()) + first * size_of(array.dtype()),
          static_cast<std::size_t>(count)};
}

/// Calls NCCL; where it fails, and not for a peer, the error says what the device says if that has failed,
/// for NCCL knows less of it. Where CUDA failed within NCCL the error also says how full the device is, of
/// which an abort has freed some by now.
template <typename F>
auto with_words_of_the_device(Context& context, const F& call) {
  try {
    return call();
  } catch (const PeerError&) {
    throw;
  } catch (const CommError& error) {
    constexpr double kLeast = 1.0 / 8;
    const std::string words = error.what();
    try {
      kernels::cuda::require_no_failure(context);
    } catch (const Error& of_device) {
      throw CommError(of_device.what());
    }
    const bool of_cuda = words.find(ncclGetErrorString(ncclUnhandledCudaError)) != std::string::npos;
    throw CommError(of_cuda ? words + kernels::cuda::full_device_text(context, kLeast) : words);
  }
}

/// While it lives, work goes into a stream for communication, behind all that the context's stream holds when
/// it is made.
class InStream {
 public:
  InStream(Context& context, Stream stream) : context_(context), before_(context.stream()) {
    DeviceRuntime& runtime = *context.runtime();
    runtime.wait(stream, runtime.ticket(before_));
    context.set_stream(stream);
  }
  ~InStream() { context_.set_stream(before_); }
  InStream(const InStream&) = delete;
  InStream& operator=(const InStream&) = delete;

 private:
  Context& context_;
  Stream before_;
};

/// Times a call on the device, if it is traced, by marks in the stream.
class DeviceSpan {
 public:
  /// @param event  of which a copy is noted in the lane.
  DeviceSpan(Context& context, const char* lane, const std::optional<TraceEvent>& event)
      : context_(context), lane_(lane), event_(event) {
    if (event_) begin_ = context.runtime()->mark(context.stream());
  }
  void end() {
    if (event_) context_.state<DeviceTimes>().note(context_, lane_, begin_, *event_);
  }

 private:
  Context& context_;
  const char* lane_;
  const std::optional<TraceEvent>& event_;
  std::int64_t begin_ = 0;
};

/// A call under way: made when the context's stream is one for communication, and alive until its result is
/// released.
class NcclOperation : public Pending::Operation {
 public:
  /// Its work comes next.
  /// @param traced  none where nobody traces.
  NcclOperation(std::shared_ptr<NcclJob> job, Context& context, std::optional<TraceEvent> traced)
      : job_(std::move(job)),
        context_(context),
        traced_(std::move(traced)),
        span_(context, context.stream() == Stream::kBackground ? kDeviceBackgroundLane : kDeviceTransferLane,
              traced_),
        device_{context.runtime()->milestone(context.stream()), {}} {}

  /// Its work has been put into the stream.
  /// @param held  what it reads and writes besides the result.
  void put(std::vector<Array> held, Array result) {
    held_ = std::move(held);
    result_ = std::move(result);
    DeviceRuntime& runtime = *context_.runtime();
    device_.done = runtime.milestone(context_.stream());
    span_.end();
    done_ = runtime.ticket(context_.stream());
  }

  /// Waits, since released memory may be reused by later work in the context's stream.
  ~NcclOperation() override {
    if (waited_ || std::uncaught_exceptions() > exceptions_) return;
    try {
      context_.runtime()->wait(context_.stream(), done_);
    } catch (const Error&) {  // the next call reports it, too
    }
  }

  Array wait() override {
    waited_ = true;
    with_words_of_the_device(context_, [this] { job_->check(); });
    if (traced_) traced_->kind = TraceKind::kWait, traced_->bytes = 0;
    DeviceSpan stall(context_, kDeviceLane, traced_);
    context_.runtime()->wait(context_.stream(), done_);
    stall.end();
    return std::move(result_);
  }
  bool poll() override {
    job_->check();
    return true;
  }
  const OnDevice* on_device() const override { return &device_; }

 private:
  std::shared_ptr<NcclJob> job_;
  Context& context_;
  std::optional<TraceEvent> traced_;
  DeviceSpan span_;
  OnDevice device_;
  std::vector<Array> held_;
  Array result_;
  DeviceRuntime::Ticket done_;
  bool waited_ = false;
  int exceptions_ = std::uncaught_exceptions();
};

/// Ranks use the same communicators, so none may go alone. Collective.
bool all_launch_in_order(Communicator& control) {
  return control.all_reduce(std::array{launches_in_order() ? 1.0 : 0.0}, ReduceOp::kMin)[0] > 0;
}

class NcclCommunicator : public Communicator {
 public:
  NcclCommunicator(std::unique_ptr<Communicator> control, const NcclOptions& options)
      : Communicator(SameRanks{}, *control),
        control_(std::move(control)),
        job_(std::make_shared<NcclJob>(options, all_launch_in_order(*control_))),
        in_job_(static_cast<std::size_t>(control_->size())),
        groups_{make_group(), make_group()} {
    std::iota(in_job_.begin(), in_job_.end(), 0);
    find_nodes();
  }
  /// @param members  as ranks of the parent.
  NcclCommunicator(const NcclCommunicator& parent, std::unique_ptr<Communicator> control,
                   const std::vector<int>& members)
      : Communicator(SameRanks{}, *control),
        control_(std::move(control)),
        job_(parent.job_),
        groups_{make_group(), make_group()} {
    for (const int member : members) in_job_.push_back(parent.in_job_[static_cast<std::size_t>(member)]);
    find_nodes();
  }
  /// Before NCCL's communicator goes, what was issued on it has to be done.
  ~NcclCommunicator() override {
    if (std::uncaught_exceptions() > exceptions_) return;
    try {
      context().runtime()->synchronise(Stream::kCommunication);
      context().runtime()->synchronise(Stream::kBackground);
    } catch (const Error&) {
      job_->abort("the device failed");
    }
  }

  int rank() const override { return control_->rank(); }
  int size() const override { return control_->size(); }
  bool records() const override { return true; }
  void check() override { job_->check(); }
  void abort(int exit_code) override {
    job_->abort(concat("the job was aborted with exit code ", exit_code));
    control_->abort(exit_code);
  }

 protected:
  Reach reach(const Call& /*call*/) const override {
    return {.device = true, .groups_of_one = job_->options().groups_of_one};
  }
  std::unique_ptr<Pending::Operation> do_start(Call call) override {
    return with_words_of_the_device(context(), [&] { return start_on_device(std::move(call)); });
  }
  Call do_control(Call call) override {
    with_words_of_the_device(context(), [this] { job_->check(); });
    return control_of(*control_, std::move(call));
  }
  std::unique_ptr<Communicator> do_split(const std::string& label, const std::vector<int>& members,
                                         std::int64_t sequence) override {
    return std::make_unique<NcclCommunicator>(*this, split_of(*control_, label, members, sequence), members);
  }

 private:
  std::unique_ptr<Pending::Operation> start_on_device(Call call);
  std::size_t own() const { return static_cast<std::size_t>(rank()); }
  void find_nodes() {
    grid_ = node_grid(in_job_, job_->options().ranks_per_node);
    two_levels_ = TwoLevels(grid_, rank());
  }
  std::unique_ptr<NcclGroup> make_group() const {
    return std::make_unique<NcclGroup>(job_, label(), rank(), size());
  }
  cudaStream_t stream() const { return kernels::cuda::stream_of(context()); }
  /// The NCCL communicator for the stream that the context has now.
  NcclGroup& group() const { return *groups_[context().stream() == Stream::kBackground ? 1 : 0]; }
  void count(Collective kind, std::int64_t messages, std::int64_t bytes) const {
    *sent_counter(kind) += {messages, static_cast<double>(bytes)};
  }

  Array workspace(std::int64_t elements, DType dtype) const {
    return {context(), {elements}, dtype, Purpose::kWorkspace};
  }
  /// Messages of one call, all at once. Those of one of several ranks to itself are copies; empty ones do not
  /// travel.
  void exchange(Collective kind, const Array& send, const std::vector<Message>& sends, Array receive,
                const std::vector<Message>& receives) const;
  /// Gathers the ranks' pieces in `result`; `send` is this rank's, or `result` itself where the piece is in
  /// its place.
  void gather(Collective kind, const Array& send, const std::vector<std::int64_t>& counts,
              Array result) const;
  void reduce_pieces(const Call& call, const std::vector<std::int64_t>& counts, Array sum,
                     std::vector<Array>& held) const;
  void reduce_in_two_levels(const Call& call, const std::vector<std::int64_t>& counts, Array sum,
                            std::vector<Array>& held) const;
  /// For pieces that are not even.
  void gather_in_two_levels(Collective kind, const Array& send, const std::vector<std::int64_t>& counts,
                            Array result) const;
  /// Whether pieces travel in two levels; the same on all ranks.
  bool in_two_levels(const std::vector<std::int64_t>& counts, DType dtype) const;
  void all_reduce(const Call& call, Array result, std::vector<Array>& held) const;
  void reduce_by_nccl(const Call& call, Array result) const;
  void broadcast(const Call& call, const Array& result) const;
  /// Whether NCCL's own reduction is taken: not for max and min, in which it drops NaNs, nor for scatters of
  /// uneven pieces.
  bool reduces_by_nccl(const Call& call) const;
  void prepare_orders();
  /// The call in a trace; none where nobody traces.
  std::optional<TraceEvent> traced(const Call& call) const;

  std::unique_ptr<Communicator> control_;
  std::shared_ptr<NcclJob> job_;
  std::vector<int> in_job_;  ///< the group's ranks
  NodeGrid grid_;
  TwoLevels two_levels_{grid_, 0};
  std::array<std::unique_ptr<NcclGroup>, 2> groups_;  ///< of urgent calls, and of those in the background
  std::unique_ptr<DeviceOrder> own_order_, order_for_all_;       ///< since the first call
  std::unique_ptr<DeviceOrder> order_in_node_, order_of_nodes_;  ///< then, of a group on several
  int exceptions_ = std::uncaught_exceptions();
};

bool are_even(const std::vector<std::int64_t>& counts) {
  return std::ranges::adjacent_find(counts, std::not_equal_to()) == counts.end();
}

/// One message with each rank, in the order of ranks.
std::vector<Message> message_each(const std::vector<std::int64_t>& counts) {
  const std::vector<std::int64_t> first = offsets(counts);
  std::vector<Message> messages;
  for (std::size_t rank = 0; rank < counts.size(); ++rank)
    messages.push_back({static_cast<int>(rank), first[rank], counts[rank]});
  return messages;
}

std::unique_ptr<Pending::Operation> NcclCommunicator::start_on_device(Call call) {
  // Without an order of launches there is one stream.
  const bool apart = call.urgency == Urgency::kBackground && job_->in_order();
  const Stream stream = apart ? Stream::kBackground : Stream::kCommunication;
  groups_[stream == Stream::kBackground ? 1 : 0]->open([&](std::string text) {
    Call tell{.kind = Collective::kControl, .control = Control::kBroadcast, .sequence = call.sequence};
    tell.texts.push_back(std::move(text));
    return std::move(control_of(*control_, std::move(tell)).texts.front());
  });
  const bool shares = call.kind == Collective::kBroadcast && call.root == rank();
  const Array result =
      shares ? call.send : Array(context(), call.result_shape, call.send.dtype(), call.result_purpose);
  prepare_orders();
  std::vector<Array> held = {call.send};
  const InStream here(context(), stream);
  auto operation = std::make_unique<NcclOperation>(job_, context(), traced(call));
  switch (call.kind) {
    case Collective::kAllGather:
      gather(call.kind, call.send, call.counts, result);
      break;
    case Collective::kReduceScatter:
      if (reduces_by_nccl(call)) {
        reduce_by_nccl(call, result);
      } else {
        reduce_pieces(call, call.counts, result, held);
      }
      break;
    case Collective::kAllReduce:
      if (reduces_by_nccl(call)) {
        reduce_by_nccl(call, result);
      } else {
        all_reduce(call, result, held);
      }
      break;
    case Collective::kAllToAll:
      exchange(call.kind, call.send, message_each(call.counts), result, message_each(call.receive_counts));
      break;
    case Collective::kBroadcast:
      broadcast(call, result);
      break;
    case Collective::kExchange:
      exchange(call.kind, call.send, call.sends, result, call.receives);
      break;
    case Collective::kControl:
      fail("control values do not travel as arrays");
  }
  operation->put(std::move(held), result);
  return operation;
}

std::optional<TraceEvent> NcclCommunicator::traced(const Call& call) const {
  if (!tracing()) return std::nullopt;
  TraceEvent event{.kind = TraceKind::kCarried, .name = name(call.kind), .layer = label()};
  event.bytes = call.sent_bytes;
  event.number = call.number;
  event.step = current_work(context()).step;
  return event;
}

/// They go up in the context's own stream, which is waited for.
void NcclCommunicator::prepare_orders() {
  if (own_order_) return;
  if (grid_.several()) {
    order_in_node_ = std::make_unique<DeviceOrder>(context(), order_for(two_levels_.number(), grid_.local));
    order_of_nodes_ = std::make_unique<DeviceOrder>(context(), order_for(two_levels_.node(), grid_.nodes));
  }
  order_for_all_ = std::make_unique<DeviceOrder>(context(), order_for_all(size()));
  own_order_ = std::make_unique<DeviceOrder>(context(), order_for(rank(), size()));
}

void NcclCommunicator::exchange(Collective kind, const Array& send, const std::vector<Message>& sends,
                                Array receive, const std::vector<Message>& receives) const {
  std::vector<Message> out, in, to_self, from_self;
  const auto sort = [&](const std::vector<Message>& all, std::vector<Message>& others,
                        std::vector<Message>& own) {
    for (const Message& message : all) {
      if (message.count > 0) (message.peer == rank() && size() > 1 ? own : others).push_back(message);
    }
  };
  sort(sends, out, to_self);
  sort(receives, in, from_self);
  for (std::size_t i = 0; i < to_self.size(); ++i) {
    const std::int64_t from = to_self[i].first, to = from_self[i].first;
    if (run_of(send, from, 0).memory != run_of(receive, to, 0).memory)
      copy_elements(context(), send, from, receive, to, to_self[i].count);
  }
  if (out.empty() && in.empty()) return;
  const ncclDataType_t type = type_of(send.dtype());
  group().run(name(kind), [&](ncclComm_t comm) {
    for (const Message& message : in) {
      const Run run = run_of(receive, message.first, message.count);
      group().check(ncclRecv(run.memory, run.count, type, message.peer, comm, stream()), name(kind));
    }
    for (const Message& message : out) {
      const Run run = run_of(send, message.first, message.count);
      group().check(ncclSend(run.memory, run.count, type, message.peer, comm, stream()), name(kind));
      count(kind, 1, message.count * size_of(send.dtype()));
    }
  });
}

void NcclCommunicator::gather(Collective kind, const Array& send, const std::vector<std::int64_t>& counts,
                              Array result) const {
  if (!are_even(counts)) {
    if (in_two_levels(counts, send.dtype())) return gather_in_two_levels(kind, send, counts, result);
    std::vector<Message> sends;
    for (int peer = 0; peer < size(); ++peer) sends.push_back({peer, 0, counts[own()]});
    return exchange(kind, send, sends, result, message_each(counts));
  }
  group().run(name(kind), [&](ncclComm_t comm) {
    const Run from = run_of(send, 0, counts[own()]), to = run_of(result, 0, result.count());
    group().check(ncclAllGather(from.memory, to.memory, from.count, type_of(send.dtype()), comm, stream()),
                  name(kind));
  });
  count(kind, size() - 1, (size() - 1) * counts[own()] * size_of(send.dtype()));
}

bool NcclCommunicator::in_two_levels(const std::vector<std::int64_t>& counts, DType dtype) const {
  if (!grid_.several()) return false;
  const std::int64_t whole = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  const double mean = static_cast<double>(whole * size_of(dtype)) / size();
  return mean * (grid_.nodes - 1) * (grid_.local - 1) >= job_->options().two_levels_from;
}

void NcclCommunicator::gather_in_two_levels(Collective kind, const Array& send,
                                            const std::vector<std::int64_t>& counts, Array result) const {
  const TwoLevels::Round between = two_levels_.pieces_between(counts),
                         within = two_levels_.pieces_within(counts);
  exchange(kind, send, between.sends, result, between.receives);
  exchange(kind, result, within.sends, result, within.receives);
}

/// The summands of both rounds come to one place, one after the other.
void NcclCommunicator::reduce_in_two_levels(const Call& call, const std::vector<std::int64_t>& counts,
                                            Array sum, std::vector<Array>& held) const {
  const std::int64_t piece = counts[own()], of_number = two_levels_.elements(counts);
  const Array others =
      workspace(std::max((grid_.local - 1) * of_number, (grid_.nodes - 1) * piece), call.send.dtype());
  const Array sums = workspace(of_number, call.send.dtype());
  const TwoLevels::Round within = two_levels_.sums_within(counts), between = two_levels_.sums_between(counts);
  exchange(call.kind, call.send, within.sends, others, within.receives);
  for (const TwoLevels::Run& run : two_levels_.runs(counts)) {
    const Array theirs = others.slice((grid_.local - 1) * run.place, {(grid_.local - 1) * run.elements()});
    const Array mine = call.send.slice(run.first, {(run.pieces - 1) * run.stride + run.count});
    Array of_node = sums.slice(run.place, {run.elements()});
    order_in_node_->add(context(), {theirs, mine, two_levels_.number(), run.count, run.stride}, call.op,
                        of_node);
  }
  exchange(call.kind, sums, between.sends, others, between.receives);
  const Array theirs = others.slice(0, {(grid_.nodes - 1) * piece}),
              mine = sums.slice(two_levels_.own_place(counts), {piece});
  order_of_nodes_->add(context(), {theirs, mine, two_levels_.node()}, call.op, sum);
  held.insert(held.end(), {others, sums});
}

/// `counts` cut what is sent; every rank has its piece from all others, and adds them.
void NcclCommunicator::reduce_pieces(const Call& call, const std::vector<std::int64_t>& counts, Array sum,
                                     std::vector<Array>& held) const {
  if (in_two_levels(counts, call.send.dtype())) return reduce_in_two_levels(call, counts, sum, held);
  const std::int64_t piece = counts[own()];
  const Array others = workspace((size() - 1) * piece, call.send.dtype());
  std::vector<Message> sends = message_each(counts), receives;
  sends.erase(sends.begin() + rank());
  for (int peer = 0; peer < size(); ++peer) {
    if (peer != rank()) receives.push_back({peer, std::ssize(receives) * piece, piece});
  }
  exchange(call.kind, call.send, sends, others, receives);
  const Array mine = call.send.slice(offsets(counts)[own()], {piece});
  own_order_->add(context(), {others, mine, rank()}, call.op, sum);
  held.push_back(others);
}

/// Small ones are gathered whole; of large ones each rank adds a part, which all get.
void NcclCommunicator::all_reduce(const Call& call, Array result, std::vector<Array>& held) const {
  const std::int64_t whole = call.send.count();
  if (call.send.bytes() <= kSmallReduceBytes) {
    const Array all = workspace(size() * whole, call.send.dtype());
    const std::vector<std::int64_t> counts(static_cast<std::size_t>(size()), whole);
    gather(call.kind, call.send, counts, all);
    order_for_all_->add(context(), {all, {}, -1}, call.op, result);
    held.push_back(all);
    return;
  }
  const std::vector<std::int64_t> counts = even_counts(whole, size());
  const Array part = result.reshaped({whole}).slice(offsets(counts)[own()], {counts[own()]});
  reduce_pieces(call, counts, part, held);
  gather(call.kind, part, counts, result);
}

bool NcclCommunicator::reduces_by_nccl(const Call& call) const {
  return job_->options().fast_reduction && call.op == ReduceOp::kSum &&
         (call.kind == Collective::kAllReduce || are_even(call.counts));
}

void NcclCommunicator::reduce_by_nccl(const Call& call, Array result) const {
  const ncclDataType_t type = type_of(call.send.dtype());
  const Run from = run_of(call.send, 0, call.send.count()), to = run_of(result, 0, result.count());
  const bool scatters = call.kind == Collective::kReduceScatter;
  group().run(name(call.kind), [&](ncclComm_t comm) {
    const ncclResult_t status =
        scatters ? ncclReduceScatter(from.memory, to.memory, to.count, type, ncclSum, comm, stream())
                 : ncclAllReduce(from.memory, to.memory, from.count, type, ncclSum, comm, stream());
    group().check(status, name(call.kind));
  });
  *sent_counter(call.kind) += {1, call.sent_bytes};
}

void NcclCommunicator::broadcast(const Call& call, const Array& result) const {
  const Run from = run_of(call.send, 0, call.send.count()), to = run_of(result, 0, result.count());
  group().run(name(call.kind), [&](ncclComm_t comm) {
    group().check(ncclBroadcast(from.memory, to.memory, to.count, type_of(call.send.dtype()), call.root, comm,
                                stream()),
                  name(call.kind));
  });
  *sent_counter(call.kind) += {call.root == rank() ? size() - 1 : 0, call.sent_bytes};
}

}  // namespace

NcclLibrary nccl_library() {
  NcclLibrary library{.built = true};
  if (ncclGetVersion(&library.version) != ncclSuccess) library.version = 0;
  return library;
}

std::unique_ptr<Communicator> make_nccl_communicator(std::unique_ptr<Communicator> control,
                                                     const NcclOptions& options) {
  require(control->context().backend() == Backend::kCuda, "NCCL needs arrays on a CUDA device");
  return std::make_unique<NcclCommunicator>(std::move(control), options);
}

}  // namespace jigsaw::inline nccl
