#include <algorithm>
#include <exception>

#include "array/copy_bytes.h"
#include "array/host_view.h"
#include "array/raw_memory.h"
#include "base/error.h"
#include "base/text.h"
#include "comm/levels.h"
#include "comm/mpi/mpi_control.h"
#include "comm/mpi/mpi_forward.h"
#include "comm/mpi/mpi_state.h"
#include "comm/mpi/mpi_transfer.h"
#include "comm/reduce.h"

namespace jigsaw::inline comm {

namespace {

using State = MpiSession::State;

/// Where each rank's piece begins, and the end.
std::vector<std::int64_t> piece_offsets(const std::vector<std::int64_t>& counts) {
  std::vector<std::int64_t> first = offsets(counts);
  first.push_back(first.back() + counts.back());
  return first;
}

/// Memory of the host, or of a device, that MPI reads and writes.
std::byte* memory(const Array& array) {
  return const_cast<std::byte*>(array.raw());
}

class MpiOperation : public Pending::Operation {
 public:
  MpiOperation(std::shared_ptr<State> state, std::shared_ptr<MpiTransfer> transfer, Array result)
      : state_(std::move(state)), transfer_(std::move(transfer)), result_(std::move(result)) {}

  /// When an exception passes, the session keeps the transfer and its memory instead.
  ~MpiOperation() override {
    if (transfer_->done() || std::uncaught_exceptions() > exceptions_) return;
    try {
      state_->finish(*transfer_);
    } catch (const Error&) {  // of MPI, or of a device that failed
      // The session still holds the transfer, and ends the job rather than finalise.
    }
  }

  Array wait() override {
    state_->finish(*transfer_);
    return std::move(result_);
  }
  bool poll() override {
    state_->progress();
    return transfer_->done();
  }

 private:
  std::shared_ptr<State> state_;
  std::shared_ptr<MpiTransfer> transfer_;
  Array result_;
  int exceptions_ = std::uncaught_exceptions();
};

class MpiCommunicator : public Communicator {
 public:
  MpiCommunicator(Context& context, std::shared_ptr<State> state, MPI_Comm comm)
      : Communicator(context),
        state_(std::move(state)),
        comm_(comm),
        rank_(state_->rank),
        size_(state_->size) {
    DeviceRuntime* const device = context.runtime();
    prepares_ = state_->background && device != nullptr && state_->cuda_aware;
    if (prepares_) state_->background->prepare([device] { device->choose_for_this_thread(); });
  }
  MpiCommunicator(const MpiCommunicator& parent, const std::string& label, MPI_Comm comm, int rank, int size)
      : Communicator(parent, label), state_(parent.state_), comm_(comm), rank_(rank), size_(size) {}
  ~MpiCommunicator() override {
    if (prepares_ && state_->background) state_->background->prepare({});
    if (state_->finalized || !state_->active.empty() || std::uncaught_exceptions() > 0) return;
    const State::Lock lock = state_->lock();
    MPI_Comm_free(&comm_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void abort(int exit_code) override { abort_job(*state_, exit_code); }

 protected:
  /// Sums are formed on the host, and what is forwarded is put together there.
  Reach reach(const Call& call) const override {
    const bool moves = call.kind == Collective::kAllGather || call.kind == Collective::kBroadcast ||
                       call.kind == Collective::kExchange ||
                       (call.kind == Collective::kAllToAll && call.block == 0);
    return {.device = moves && state_->cuda_aware, .arrivals = true};
  }
  std::unique_ptr<Pending::Operation> do_start(Call call) override;
  Call do_control(Call call) override {
    return run_control(std::move(call), {comm_, rank_, size_, levels_}, *state_,
                       *sent_counter(Collective::kControl));
  }
  std::unique_ptr<Communicator> do_split(const std::string& label, const std::vector<int>& members,
                                         std::int64_t sequence) override;

 private:
  /// Where arrays stand, if not in host memory.
  DeviceRuntime* device_of(const Call& call) const {
    if (call.send.device() == Device::kCpu) return nullptr;
    require(state_->cuda_aware && context().runtime() != nullptr, "MPI takes arrays in host memory");
    return context().runtime();
  }
  void move_to_self(MpiTransfer& transfer, const Call& call, const Array& result) const;
  std::size_t own() const { return static_cast<std::size_t>(rank_); }
  /// Peers in the order in which this rank turns to them, so that not all turn to rank 0 first.
  std::vector<int> others() const {
    std::vector<int> ranks;
    for (int step = 1; step < size_; ++step) ranks.push_back((rank_ + step) % size_);
    return ranks;
  }

  void gather(MpiTransfer& transfer, const Call& call, std::byte* result) const;
  void then_gather(MpiTransfer& transfer, std::size_t outer, std::byte* result,
                   const std::vector<std::int64_t>& first, std::int64_t element) const;
  void reduce_pieces(MpiTransfer& transfer, const Call& call, const std::vector<std::int64_t>& counts,
                     std::byte* result) const;
  void reduce_small(MpiTransfer& transfer, const Call& call, std::byte* result) const;
  void reduce_then_gather(MpiTransfer& transfer, const Call& call, std::byte* result) const;
  void broadcast(MpiTransfer& transfer, const Array& result, int root) const;
  void all_to_all(MpiTransfer& transfer, const Call& call, const Array& result) const;
  void exchange(MpiTransfer& transfer, const Call& call, const Array& result) const;

  std::shared_ptr<State> state_;
  MPI_Comm comm_;
  int rank_;
  int size_;
  std::vector<Level> levels_ = levels(size_, rank_);
  std::shared_ptr<const ForwardRoute> route_;  ///< once something was forwarded
  bool prepares_ = false;                      ///< the thread beside, for the device
};

/// Copies what a rank sends to itself. MPI begins after that, and on a device after all that still uses the
/// memory.
void MpiCommunicator::move_to_self(MpiTransfer& transfer, const Call& call, const Array& result) const {
  const std::int64_t element = size_of(call.send.dtype());
  DeviceRuntime* const device = device_of(call);
  const auto move = [&](std::int64_t from, std::int64_t to, std::int64_t count) {
    const std::byte* const source = memory(call.send) + from * element;
    std::byte* const target = memory(result) + to * element;
    if (device == nullptr) {
      transfer.read([=] { copy_bytes(target, source, count * element); });
    } else if (count > 0) {
      device->copy(context().stream(), source, target, static_cast<std::size_t>(count * element));
    }
  };
  if (device == nullptr && call.arrival) transfer.begin_at(*call.arrival);
  if (call.kind == Collective::kAllGather) move(0, offsets(call.counts)[own()], call.counts[own()]);
  if (call.kind == Collective::kAllToAll && call.block == 0)
    move(offsets(call.counts)[own()], offsets(call.receive_counts)[own()], call.counts[own()]);
  const auto to_self = [this](const Message& message) { return message.peer == rank_; };
  auto expected = std::ranges::find_if(call.receives, to_self);
  for (const Message& message : call.sends) {
    if (!to_self(message)) continue;
    move(message.first, expected->first, message.count);
    expected = std::find_if(expected + 1, call.receives.end(), to_self);
  }
  if (device == nullptr) return;
  constexpr Stream kBehind = Stream::kCommunication;  // the stream for computation goes on meanwhile
  device->wait(kBehind, device->ticket(context().stream()));
  transfer.begin_all_at(Arrival(*device, kBehind));
}

std::unique_ptr<Pending::Operation> MpiCommunicator::do_start(Call call) {
  const bool shares = call.kind == Collective::kBroadcast && call.root == rank_;
  Context& there = device_of(call) == nullptr ? host() : context();
  const Array result =
      shares ? call.send : Array(there, call.result_shape, call.send.dtype(), call.result_purpose);
  const auto transfer = std::make_shared<MpiTransfer>(
      *state_, comm_, call.send.dtype(), static_cast<int>(call.sequence % kTags), sent_counter(call.kind));
  transfer->own(Array(result));
  const Call& kept = transfer->own(std::move(call));
  state_->add(transfer);  // what it has posted stays, whatever fails below
  move_to_self(*transfer, kept, result);
  switch (kept.kind) {
    case Collective::kAllGather:
      gather(*transfer, kept, memory(result));
      break;
    case Collective::kReduceScatter:
      reduce_pieces(*transfer, kept, kept.counts, host_memory(result));
      break;
    case Collective::kAllReduce:
      if (kept.send.bytes() <= kSmallReduceBytes) {
        reduce_small(*transfer, kept, host_memory(result));
      } else {
        reduce_then_gather(*transfer, kept, host_memory(result));
      }
      break;
    case Collective::kAllToAll:
      if (kept.block > 0) {
        if (!route_) route_ = std::make_shared<ForwardRoute>(levels_, rank_, size_);
        forward_blocks(*transfer, kept, result, route_, host());
      } else {
        all_to_all(*transfer, kept, result);
      }
      break;
    case Collective::kBroadcast:
      broadcast(*transfer, result, kept.root);
      break;
    case Collective::kExchange:
      exchange(*transfer, kept, result);
      break;
    case Collective::kControl:
      fail("control values do not travel as arrays");
  }
  // The first messages go out now, and what is under way goes on: no other call may come for long.
  state_->progress();
  return std::make_unique<MpiOperation>(state_, transfer, result);
}

/// A reduction under way: what this rank has of the sums, from element `base` of the whole on.
struct PartialSums {
  std::vector<Level> levels;
  std::vector<std::int64_t> first;  ///< of every rank's piece, and the end
  Array staging;                    ///< what the sources of a level sent
  std::vector<Array> sums;          ///< of each level but the last
  const std::byte* now = nullptr;
  std::int64_t base = 0;
  int threads = 1;  ///< that add
};

/// Starts a level: sends counterparts what their parts want, receives what the sources have.
void exchange_summands(MpiTransfer& transfer, const Level& level, const PartialSums& state,
                       std::int64_t element) {
  const auto range = [&](int part) {
    const auto p = static_cast<std::size_t>(part);
    const std::int64_t begin = state.first[static_cast<std::size_t>(level.begin[p])];
    return std::pair(begin, state.first[static_cast<std::size_t>(level.begin[p + 1])] - begin);
  };
  const std::int64_t wanted = range(level.own).second;
  for (std::size_t i = 0; wanted > 0 && i < level.sources.size(); ++i) {
    transfer.receive(level.sources[i],
                     host_memory(state.staging) + static_cast<std::int64_t>(i) * wanted * element, wanted);
  }
  // Each rank turns to the part after its own first, so that not all turn to the same one.
  for (int step = 1; step < level.parts(); ++step) {
    const int part = (level.own + step) % level.parts();
    const auto [begin, count] = range(part);
    if (count == 0) continue;
    transfer.send(level.counterparts[static_cast<std::size_t>(part)],
                  state.now + (begin - state.base) * element, count);
  }
}

/// Ends it: adds what came to the own part's elements, in the order of ranks.
void add_summands(const Level& level, PartialSums& state, const Call& call, int rank, std::byte* out) {
  const std::int64_t element = size_of(call.send.dtype());
  const auto own = static_cast<std::size_t>(level.own);
  const std::int64_t begin = state.first[static_cast<std::size_t>(level.begin[own])];
  const std::int64_t count = state.first[static_cast<std::size_t>(level.begin[own + 1])] - begin;
  const std::byte* const mine = state.now + (begin - state.base) * element;
  const std::byte* next = host_memory(state.staging);
  std::vector<const std::byte*> pieces;
  for (const int from : summands(level, rank)) {
    pieces.push_back(from == rank ? mine : next);
    if (from != rank) next += count * element;
  }
  reduce_in_order(pieces, count, call.send.dtype(), call.op, out, state.threads);
  state.now = out;
  state.base = begin;
}

/// `counts` cut what is sent; the sums of this rank's piece come to `result`.
void MpiCommunicator::reduce_pieces(MpiTransfer& transfer, const Call& call,
                                    const std::vector<std::int64_t>& counts, std::byte* result) const {
  const std::int64_t element = size_of(call.send.dtype());
  auto state = std::make_shared<PartialSums>();
  state->levels = levels_;
  state->first = piece_offsets(counts);
  state->now = host_memory(call.send);
  state->threads = host().threads();
  std::int64_t staged = 0;
  for (std::size_t l = 0; l < levels_.size(); ++l) {
    const Level& level = levels_[l];
    const auto own = static_cast<std::size_t>(level.own);
    const std::int64_t count = state->first[static_cast<std::size_t>(level.begin[own + 1])] -
                               state->first[static_cast<std::size_t>(level.begin[own])];
    staged = std::max(staged, count * std::ssize(level.sources));
    if (l + 1 < levels_.size())
      state->sums.emplace_back(host(), Shape{count}, call.send.dtype(), Purpose::kWorkspace);
  }
  state->staging = Array(host(), {staged}, call.send.dtype(), Purpose::kWorkspace);
  exchange_summands(transfer, levels_.front(), *state, element);
  for (std::size_t l = 0; l < levels_.size(); ++l) {
    transfer.then([l, state, &transfer, &call, rank = rank_, result, element] {
      const bool last = l + 1 == state->levels.size();
      add_summands(state->levels[l], *state, call, rank, last ? result : host_memory(state->sums[l]));
      if (!last) exchange_summands(transfer, state->levels[l + 1], *state, element);
    });
  }
}

/// What the parts of a level hold comes together.
void gather_level(MpiTransfer& transfer, const Level& level, std::byte* result,
                  const std::vector<std::int64_t>& first, std::int64_t element) {
  const auto range = [&](int part) {
    const auto p = static_cast<std::size_t>(part);
    const std::int64_t begin = first[static_cast<std::size_t>(level.begin[p])];
    return std::pair(result + begin * element, first[static_cast<std::size_t>(level.begin[p + 1])] - begin);
  };
  for (int part = 0; part < level.parts(); ++part) {
    const auto [data, count] = range(part);
    if (part == level.own || count == 0) continue;
    transfer.receive(level.counterparts[static_cast<std::size_t>(part)], data, count);
  }
  const auto [data, count] = range(level.own);
  for (const int source : level.sources) {
    if (count > 0) transfer.send(source, data, count);
  }
}

/// Stages of so many outer levels, innermost first: what the own part of the last holds is in its place.
void MpiCommunicator::then_gather(MpiTransfer& transfer, std::size_t outer, std::byte* result,
                                  const std::vector<std::int64_t>& first, std::int64_t element) const {
  while (outer-- > 0) {
    transfer.then(
        [=, level = levels_[outer], &transfer] { gather_level(transfer, level, result, first, element); });
  }
}

/// The innermost level begins at once, for its receives wait for nothing; what it sends is this rank's piece,
/// which comes to its place before.
void MpiCommunicator::gather(MpiTransfer& transfer, const Call& call, std::byte* result) const {
  const std::vector<std::int64_t> first = piece_offsets(call.counts);
  const std::int64_t element = size_of(call.send.dtype());
  gather_level(transfer, levels_.back(), result, first, element);
  then_gather(transfer, levels_.size() - 1, result, first, element);
}

/// Each rank reduces one part and sends it to all.
void MpiCommunicator::reduce_then_gather(MpiTransfer& transfer, const Call& call, std::byte* result) const {
  const std::vector<std::int64_t> counts = even_counts(call.send.count(), size_);
  const std::vector<std::int64_t> first = piece_offsets(counts);
  const std::int64_t element = size_of(call.send.dtype());
  reduce_pieces(transfer, call, counts, result + first[own()] * element);
  then_gather(transfer, levels_.size(), result, first, element);
}

/// Innermost first, the sums of whole parts go to their counterparts.
void MpiCommunicator::reduce_small(MpiTransfer& transfer, const Call& call, std::byte* result) const {
  const std::int64_t count = call.send.count(), bytes = call.send.bytes();
  const auto depth = std::ssize(levels_);
  const Array& slots =
      transfer.own(Array(host(), {depth * Level::kParts * count}, call.send.dtype(), Purpose::kWorkspace));
  const auto slot = [&slots, bytes](std::int64_t level, std::size_t part) {
    return host_memory(slots) + (level * Level::kParts + static_cast<std::int64_t>(part)) * bytes;
  };
  const std::byte* now = host_memory(call.send);
  for (std::int64_t l = depth - 1; l >= 0; --l) {
    const Level& level = levels_[static_cast<std::size_t>(l)];
    // The own part's sum stands in the own slot of the level around it, which nobody sends to.
    std::byte* const out =
        l == 0 ? result : slot(l - 1, static_cast<std::size_t>(levels_[static_cast<std::size_t>(l - 1)].own));
    transfer.then([=, &transfer] {
      for (std::size_t part = 0; part + 1 < level.begin.size(); ++part) {
        if (static_cast<int>(part) != level.own)
          transfer.receive(level.counterparts[part], slot(l, part), count);
      }
      for (const int source : level.sources) transfer.send(source, now, count);
    });
    transfer.then([=, &call] {
      std::vector<const std::byte*> parts;
      for (std::size_t part = 0; part + 1 < level.begin.size(); ++part) {
        parts.push_back(static_cast<int>(part) == level.own ? now : slot(l, part));
      }
      reduce_in_order(parts, count, call.send.dtype(), call.op, out);
    });
    now = out;
  }
}

void MpiCommunicator::broadcast(MpiTransfer& transfer, const Array& result, int root) const {
  const Tree branch = tree(size_, place_from(root, rank_, size_));
  if (branch.parent >= 0)
    transfer.receive(rank_at(root, branch.parent, size_), memory(result), result.count());
  transfer.then([=, &transfer, size = size_] {
    for (const auto& [child, end] : branch.branches)
      transfer.send(rank_at(root, child, size), memory(result), result.count());
  });
}

/// Counts differ from rank to rank, so ranks cannot agree without asking whether MPI's 32-bit counts will do:
/// messages throughout, which is also what Open MPI's non-blocking MPI_Ialltoallv does.
void MpiCommunicator::all_to_all(MpiTransfer& transfer, const Call& call, const Array& result) const {
  const std::vector<std::int64_t> send_first = offsets(call.counts);
  const std::vector<std::int64_t> receive_first = offsets(call.receive_counts);
  const std::int64_t size = size_of(call.send.dtype());
  for (const int peer : others()) {
    const auto p = static_cast<std::size_t>(peer);
    if (call.receive_counts[p] > 0)
      transfer.receive(peer, memory(result) + receive_first[p] * size, call.receive_counts[p]);
  }
  for (const int peer : others()) {
    const auto p = static_cast<std::size_t>(peer);
    if (call.counts[p] > 0) transfer.send(peer, memory(call.send) + send_first[p] * size, call.counts[p]);
  }
}

void MpiCommunicator::exchange(MpiTransfer& transfer, const Call& call, const Array& result) const {
  const std::int64_t size = size_of(call.send.dtype());
  for (const Message& message : call.receives) {
    if (message.peer != rank_)
      transfer.receive(message.peer, memory(result) + message.first * size, message.count);
  }
  for (const Message& message : call.sends) {
    if (message.peer != rank_)
      transfer.send(message.peer, memory(call.send) + message.first * size, message.count);
  }
}

/// MPI_Comm_split blocks, so what peers may be waiting for is finished first.
std::unique_ptr<Communicator> MpiCommunicator::do_split(const std::string& label,
                                                        const std::vector<int>& members, std::int64_t) {
  state_->wait_for_arrivals();
  while (!state_->active.empty()) state_->progress();
  const State::Lock lock = state_->lock();
  const auto key = static_cast<int>(std::find(members.begin(), members.end(), rank_) - members.begin());
  MPI_Comm comm = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split(comm_, members.front(), key, &comm), "MPI_Comm_split");
  return std::make_unique<MpiCommunicator>(*this, label, comm, key, static_cast<int>(members.size()));
}

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator(Context& context, std::shared_ptr<State> state,
                                                    MPI_Comm comm) {
  return std::make_unique<MpiCommunicator>(context, std::move(state), comm);
}

}  // namespace jigsaw::inline comm
