#include "comm/mpi/mpi_transfer.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline comm {

MPI_Datatype mpi_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return MPI_FLOAT;
    case DType::kFloat64:
      return MPI_DOUBLE;
    case DType::kBfloat16:
      return MPI_UINT16_T;
  }
  fail("unknown element type");
}

MPI_Request* MpiTransfer::add_request(std::int64_t expected) {
  expected_.push_back(expected);
  requests_.push_back(MPI_REQUEST_NULL);
  return &requests_.back();
}

/// Empty messages are sent, too: a peer that expects something else then hears of it.
void MpiTransfer::send(int peer, const std::byte* data, std::int64_t count) {
  if (arrival_) return held_back_.push_back([=, this] { send(peer, data, count); });
  const MpiSession::State::Lock lock = state_.lock();
  std::int64_t first = 0;
  do {
    const std::int64_t part = std::min(count - first, state_.options.largest_count);
    check_mpi(MPI_Isend(data + first * size_of(dtype_), static_cast<int>(part), mpi_type(dtype_), peer, tag_,
                        comm_, add_request(-1)),
              "MPI_Isend");
    *sent_ += {1, static_cast<double>(part * size_of(dtype_))};
    first += part;
  } while (first < count);
}

void MpiTransfer::receive(int peer, std::byte* data, std::int64_t count) {
  if (arrival_ && receives_at_arrival_)
    return held_back_.push_back([=, this] { receive(peer, data, count); });
  const MpiSession::State::Lock lock = state_.lock();
  std::int64_t first = 0;
  do {
    const std::int64_t part = std::min(count - first, state_.options.largest_count);
    check_mpi(MPI_Irecv(data + first * size_of(dtype_), static_cast<int>(part), mpi_type(dtype_), peer, tag_,
                        comm_, add_request(part)),
              "MPI_Irecv");
    first += part;
  } while (first < count);
}

void MpiTransfer::read(std::function<void()> reader) {
  if (arrival_) return held_back_.push_back(std::move(reader));
  reader();
}

bool MpiTransfer::step() {
  if (arrival_) {
    if (!arrival_->here()) return false;
    arrival_.reset();
    for (const std::function<void()>& each : std::exchange(held_back_, {})) each();
  }
  while (!done_ && test()) {
    requests_.clear();
    expected_.clear();
    if (next_stage_ == stages_.size()) {
      done_ = true;
      held_.clear();
      stages_.clear();
    } else {
      stages_[next_stage_++]();
    }
  }
  return done_;
}

bool MpiTransfer::test() {
  if (requests_.empty()) return true;
  int all = 0;
  std::vector<MPI_Status> statuses(requests_.size());
  const MpiSession::State::Lock lock = state_.lock();
  const int code = MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &all, statuses.data());
  if (code == MPI_ERR_IN_STATUS) {
    for (const MPI_Status& status : statuses) {
      if (status.MPI_ERROR != MPI_ERR_PENDING) check_mpi(status.MPI_ERROR, "a transfer");
    }
  }
  check_mpi(code, "MPI_Testall");
  if (all != 0) check_received(statuses);
  return all != 0;
}

void MpiTransfer::check_received(const std::vector<MPI_Status>& statuses) const {
  for (std::size_t i = 0; i < statuses.size(); ++i) {
    if (expected_[i] < 0) continue;
    int count = 0;
    check_mpi(MPI_Get_count(&statuses[i], mpi_type(dtype_), &count), "MPI_Get_count");
    if (count != expected_[i]) {
      throw CommError(concat("a message of ", count, " elements came from rank ", statuses[i].MPI_SOURCE,
                             " of the group where ", expected_[i], " were expected"));
    }
  }
}

}  // namespace jigsaw::inline comm
