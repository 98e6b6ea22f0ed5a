#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "comm/call.h"
#include "comm/levels.h"
#include "comm/mpi/mpi_state.h"

namespace jigsaw::inline comm {

MPI_Datatype mpi_type(DType dtype);

/// MPI requests, what they read and write, and stages that run once all requests before them have
/// completed, and may add more.
class MpiTransfer {
 public:
  /// Messages carry `tag`, so that transfers under way at the same time stay apart; what is sent is added to
  /// `sent`.
  /// @param state  outlives the transfer; its lock is held while MPI is called, and by no caller.
  MpiTransfer(MpiSession::State& state, MPI_Comm comm, DType dtype, int tag, std::shared_ptr<Sent> sent)
      : state_(state), comm_(comm), dtype_(dtype), tag_(tag), sent_(std::move(sent)) {}
  /// What is sent is there from `arrival` on: until then receives are posted, and all else is held back.
  void begin_at(const Arrival& arrival) { arrival_ = arrival; }
  /// Receives are, too: a device still uses where they go.
  void begin_all_at(const Arrival& arrival) {
    arrival_ = arrival;
    receives_at_arrival_ = true;
  }
  MpiTransfer(const MpiTransfer&) = delete;
  MpiTransfer& operator=(const MpiTransfer&) = delete;

  /// Keeps an object alive as long as the transfer.
  template <typename T>
  const T& own(T value) {
    auto held = std::make_shared<T>(std::move(value));
    held_.push_back(held);
    return *held;
  }

  /// Messages between one pair match in order. One of another length than expected is an error.
  void send(int peer, const std::byte* data, std::int64_t count);
  void receive(int peer, std::byte* data, std::int64_t count);

  /// Reads what is sent, when it is there.
  void read(std::function<void()> reader);
  void then(std::function<void()> stage) { stages_.push_back(std::move(stage)); }

  /// Progresses without blocking; true when all stages are done.
  bool step();
  bool done() const { return done_; }
  /// Whether what is sent was found to be there.
  bool arrived() const { return !arrival_; }
  /// The host waits for what is sent to be there.
  void wait_for_arrival() const {
    if (arrival_) arrival_->wait();
  }

 private:
  bool test();
  void check_received(const std::vector<MPI_Status>& statuses) const;
  MPI_Request* add_request(std::int64_t expected);

  MpiSession::State& state_;
  MPI_Comm comm_;
  DType dtype_;
  int tag_;
  std::shared_ptr<Sent> sent_;
  std::vector<MPI_Request> requests_;
  std::vector<std::int64_t> expected_;  ///< elements of a received message; −1 for other requests
  std::vector<std::shared_ptr<void>> held_;
  std::vector<std::function<void()>> stages_;
  std::size_t next_stage_ = 0;
  std::optional<Arrival> arrival_;  ///< none once what is sent is there
  bool receives_at_arrival_ = false;
  std::vector<std::function<void()>> held_back_;
  bool done_ = false;
};

}  // namespace jigsaw::inline comm
