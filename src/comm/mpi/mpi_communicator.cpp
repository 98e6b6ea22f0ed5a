#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>

#include "base/error.h"
#include "base/text.h"
#include "comm/mpi/mpi_state.h"
#include "comm/mpi/mpi_transfer.h"
#include "comm/reduce.h"

namespace jigsaw {

namespace {

using State = MpiSession::State;

/// All-reduces of at most this many bytes send everything to everyone: one round of messages, not two.
constexpr std::int64_t kSmall = 4096;
/// MPI guarantees tags up to 32767.
constexpr std::int64_t kTags = 32768;

class MpiOperation : public Pending::Operation {
 public:
  MpiOperation(std::shared_ptr<State> state, std::shared_ptr<MpiTransfer> transfer, Array result)
      : state_(std::move(state)), transfer_(std::move(transfer)), result_(std::move(result)) {}

  /// When an exception passes, the session keeps the transfer and its memory instead.
  ~MpiOperation() override {
    if (transfer_->done() || std::uncaught_exceptions() > exceptions_) return;
    try {
      state_->finish(*transfer_);
    } catch (const CommError&) {
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
      : Communicator(context), state_(std::move(state)), comm_(comm) {
    look_up();
  }
  MpiCommunicator(const MpiCommunicator& parent, const std::string& label, MPI_Comm comm)
      : Communicator(parent, label), state_(parent.state_), comm_(comm) {
    look_up();
  }
  ~MpiCommunicator() override {
    if (!state_->finalized && state_->active.empty() && std::uncaught_exceptions() == 0)
      MPI_Comm_free(&comm_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void abort(int exit_code) override {
    std::fflush(nullptr);
    MPI_Abort(MPI_COMM_WORLD, exit_code);
  }

 protected:
  std::unique_ptr<Pending::Operation> do_start(Call call) override;
  std::vector<std::string> do_control(Call call) override;
  std::unique_ptr<Communicator> do_split(const std::string& label, const std::vector<int>& members,
                                         std::int64_t sequence) override;

 private:
  void look_up() {
    check_mpi(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
    check_mpi(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
  }
  std::size_t own() const { return static_cast<std::size_t>(rank_); }
  /// Peers in the order in which this rank turns to them, so that not all turn to rank 0 first.
  std::vector<int> others() const {
    std::vector<int> ranks;
    for (int step = 1; step < size_; ++step) ranks.push_back((rank_ + step) % size_);
    return ranks;
  }

  void wait_for(MPI_Request& request);
  void all_gather(MpiTransfer& transfer, const Array& send, const Array& result,
                  const std::vector<std::int64_t>& counts) const;
  void reduce_pieces(MpiTransfer& transfer, const Call& call, const std::vector<std::int64_t>& counts,
                     std::byte* result);
  void reduce_everything(MpiTransfer& transfer, const Call& call, const Array& result);
  void reduce_then_gather(MpiTransfer& transfer, const Call& call, const Array& result);
  void all_to_all(MpiTransfer& transfer, const Call& call, const Array& result) const;
  void exchange(MpiTransfer& transfer, const Call& call, const Array& result) const;

  std::shared_ptr<State> state_;
  MPI_Comm comm_;
  int rank_ = 0;
  int size_ = 0;
};

std::unique_ptr<Pending::Operation> MpiCommunicator::do_start(Call call) {
  const bool shares = call.kind == Collective::kBroadcast && call.root == rank_;
  const Array result =
      shares ? call.send : Array(context(), call.result_shape, call.send.dtype(), call.result_purpose);
  const auto transfer = std::make_shared<MpiTransfer>(comm_, state_->options.largest_count, call.send.dtype(),
                                                      static_cast<int>(call.sequence % kTags));
  transfer->own(Array(result));
  const Call& kept = transfer->own(std::move(call));
  switch (kept.kind) {
    case Collective::kAllGather:
      all_gather(*transfer, kept.send, result, kept.counts);
      break;
    case Collective::kReduceScatter:
      reduce_pieces(*transfer, kept, kept.counts, result.raw());
      break;
    case Collective::kAllReduce:
      if (kept.send.bytes() <= kSmall) {
        reduce_everything(*transfer, kept, result);
      } else {
        reduce_then_gather(*transfer, kept, result);
      }
      break;
    case Collective::kAllToAll:
      all_to_all(*transfer, kept, result);
      break;
    case Collective::kBroadcast:
      transfer->broadcast(result.raw(), result.count(), kept.root);
      break;
    case Collective::kExchange:
      exchange(*transfer, kept, result);
      break;
    case Collective::kControl:
      fail("control values do not travel as arrays");
  }
  state_->active.push_back(transfer);
  return std::make_unique<MpiOperation>(state_, transfer, result);
}

/// MPI counts displacements in 32 bits, too: what is larger goes as messages.
void MpiCommunicator::all_gather(MpiTransfer& transfer, const Array& send, const Array& result,
                                 const std::vector<std::int64_t>& counts) const {
  if (result.count() <= state_->options.largest_count) {
    return transfer.all_gather(send.raw(), result.raw(), counts);
  }
  const std::vector<std::int64_t> first = offsets(counts);
  const std::int64_t size = size_of(send.dtype());
  for (const int peer : others()) {
    const auto p = static_cast<std::size_t>(peer);
    transfer.receive(peer, result.raw() + first[p] * size, counts[p]);
  }
  for (const int peer : others()) transfer.send(peer, send.raw(), send.count());
  std::memcpy(result.raw() + first[own()] * size, send.raw(), static_cast<std::size_t>(send.bytes()));
}

/// Everyone's own piece comes here and is summed in rank order. `counts` cut what is sent.
void MpiCommunicator::reduce_pieces(MpiTransfer& transfer, const Call& call,
                                    const std::vector<std::int64_t>& counts, std::byte* result) {
  const std::int64_t size = size_of(call.send.dtype());
  const std::int64_t count = counts[own()];
  const std::vector<std::int64_t> first = offsets(counts);
  const Array& staging =
      transfer.own(Array(context(), {(size_ - 1) * count}, call.send.dtype(), Purpose::kWorkspace));
  std::vector<const std::byte*> pieces;
  for (int peer = 0; peer < size_; ++peer) {
    const std::int64_t slot = peer < rank_ ? peer : peer - 1;
    std::byte* const data =
        peer == rank_ ? call.send.raw() + first[own()] * size : staging.raw() + slot * count * size;
    pieces.push_back(data);
    if (peer != rank_) transfer.receive(peer, data, count);
  }
  for (const int peer : others()) {
    const auto p = static_cast<std::size_t>(peer);
    transfer.send(peer, call.send.raw() + first[p] * size, counts[p]);
  }
  transfer.then([pieces = std::move(pieces), count, dtype = call.send.dtype(), op = call.op, result] {
    reduce_in_order(pieces, count, dtype, op, result);
  });
}

void MpiCommunicator::reduce_everything(MpiTransfer& transfer, const Call& call, const Array& result) {
  const std::int64_t count = call.send.count();
  const Array& all = transfer.own(Array(context(), {size_ * count}, call.send.dtype(), Purpose::kWorkspace));
  all_gather(transfer, call.send, all, std::vector<std::int64_t>(static_cast<std::size_t>(size_), count));
  transfer.then([&all, &call, count, result, size = size_] {
    std::vector<const std::byte*> pieces;
    for (int r = 0; r < size; ++r) pieces.push_back(all.raw() + r * count * size_of(call.send.dtype()));
    reduce_in_order(pieces, count, call.send.dtype(), call.op, result.raw());
  });
}

/// Each rank reduces one part and sends it to all.
void MpiCommunicator::reduce_then_gather(MpiTransfer& transfer, const Call& call, const Array& result) {
  const std::vector<std::int64_t> counts = even_counts(call.send.count(), size_);
  const std::vector<std::int64_t> first = offsets(counts);
  const std::int64_t size = size_of(call.send.dtype());
  reduce_pieces(transfer, call, counts, result.raw() + first[own()] * size);
  transfer.then([&transfer, result, counts, first, size, me = own(), peers = others()] {
    for (const int peer : peers) {
      const auto p = static_cast<std::size_t>(peer);
      transfer.receive(peer, result.raw() + first[p] * size, counts[p]);
    }
    for (const int peer : peers) transfer.send(peer, result.raw() + first[me] * size, counts[me]);
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
    transfer.receive(peer, result.raw() + receive_first[p] * size, call.receive_counts[p]);
  }
  for (const int peer : others()) {
    const auto p = static_cast<std::size_t>(peer);
    transfer.send(peer, call.send.raw() + send_first[p] * size, call.counts[p]);
  }
  std::memcpy(result.raw() + receive_first[own()] * size, call.send.raw() + send_first[own()] * size,
              static_cast<std::size_t>(call.counts[own()] * size));
}

void MpiCommunicator::exchange(MpiTransfer& transfer, const Call& call, const Array& result) const {
  const std::int64_t size = size_of(call.send.dtype());
  std::vector<Message> to_self;
  for (const Message& message : call.receives) {
    if (message.peer == rank_) {
      to_self.push_back(message);
    } else {
      transfer.receive(message.peer, result.raw() + message.first * size, message.count);
    }
  }
  auto expected = to_self.begin();
  for (const Message& message : call.sends) {
    const std::byte* const data = call.send.raw() + message.first * size;
    if (message.peer == rank_) {
      std::memcpy(result.raw() + (expected++)->first * size, data,
                  static_cast<std::size_t>(message.count * size));
    } else {
      transfer.send(message.peer, data, message.count);
    }
  }
}

/// Non-blocking inside, so that transfers under way progress while this rank waits for others.
std::vector<std::string> MpiCommunicator::do_control(Call call) {
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(size_));
  const auto length = static_cast<std::int64_t>(call.text.size());
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Iallgather(&length, 1, MPI_INT64_T, lengths.data(), 1, MPI_INT64_T, comm_, &request),
            "MPI_Iallgather");
  wait_for(request);
  const std::vector<std::int64_t> first = offsets(lengths);
  const std::int64_t total = first.back() + lengths.back();
  if (total > INT32_MAX) throw CommError(concat("control texts of ", total, " bytes are too large"));
  std::string all(static_cast<std::size_t>(total), '\0');
  if (total > 0) {
    const std::vector<int> counts(lengths.begin(), lengths.end());
    const std::vector<int> displacements(first.begin(), first.end());
    check_mpi(MPI_Iallgatherv(call.text.data(), counts[own()], MPI_CHAR, all.data(), counts.data(),
                              displacements.data(), MPI_CHAR, comm_, &request),
              "MPI_Iallgatherv");
    wait_for(request);
  }
  std::vector<std::string> texts;
  for (std::size_t r = 0; r < lengths.size(); ++r) {
    texts.push_back(all.substr(static_cast<std::size_t>(first[r]), static_cast<std::size_t>(lengths[r])));
  }
  return texts;
}

void MpiCommunicator::wait_for(MPI_Request& request) {
  int done = 0;
  while (done == 0) {
    check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    state_->progress();
  }
}

/// MPI_Comm_split blocks, so what peers may be waiting for is finished first.
std::unique_ptr<Communicator> MpiCommunicator::do_split(const std::string& label,
                                                        const std::vector<int>& members, std::int64_t) {
  while (!state_->active.empty()) state_->progress();
  const auto key = std::find(members.begin(), members.end(), rank_) - members.begin();
  MPI_Comm comm = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split(comm_, members.front(), static_cast<int>(key), &comm), "MPI_Comm_split");
  return std::make_unique<MpiCommunicator>(*this, label, comm);
}

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator(Context& context, std::shared_ptr<State> state,
                                                    MPI_Comm comm) {
  return std::make_unique<MpiCommunicator>(context, std::move(state), comm);
}

}  // namespace jigsaw
