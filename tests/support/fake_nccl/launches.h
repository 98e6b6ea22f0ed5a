#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "nccl.h"

/// Calls of NCCL as what was issued with them, for the fakes alone: between threads (fake_nccl.cpp) and
/// between processes (between_processes.cpp). A program is linked with one of these.
namespace jigsaw::testing::fake_nccl {

using Bytes = std::vector<std::byte>;

/// Every float type reads it as a NaN.
inline constexpr int kNaNByte = 0xff;

enum class Kind : std::uint8_t { kMessages, kAllGather, kReduceScatter, kAllReduce, kBroadcast };

/// What travels from one rank to another, itself among them, in one launch.
struct Part {
  int peer = 0;
  std::byte* memory = nullptr;
  std::size_t count = 0;  ///< elements
  ncclDataType_t type = ncclFloat32;
  Bytes snapshot;         ///< between threads: of what is sent, since its stream came there
  std::size_t place = 0;  ///< among the messages of its two ranks

  std::size_t bytes() const { return count * (type == ncclFloat64 ? 8 : type == ncclFloat32 ? 4 : 2); }
};

/// What one rank issued in one group of calls on one communicator.
struct Launch {
  FakeComm* comm = nullptr;
  cudaStream_t stream = nullptr;
  std::shared_ptr<FakeStream> kept = nullptr;  ///< the stream, once it is there: others may run it later
  Kind kind = Kind::kMessages;
  int root = 0;
  std::vector<Part> sends, receives;
  bool captured = false;    ///< it does not run: each launch of the graph issues another one like it
  std::int64_t number = 0;  ///< in its stream; 0: not there yet
  std::size_t place = 0;    ///< between threads: of a collective, among those of its rank
  bool begun = false, done = false;
  std::size_t taken = 0;  ///< between threads: launches of others that have what it sends
};

/// Adds to each element.
/// @param values  as many bytes as `sum`, of a type that NCCL adds here: float32 or float64.
void add(ncclDataType_t type, Bytes& sum, const std::byte* values);

/// In a group of calls.
bool in_group();
/// Of a launch, where it is said that nothing waits for it.
std::string name_of(const Launch& launch);
/// Puts it into its stream.
void put(const std::shared_ptr<Launch>& launch);

/// NCCL's thread stores the communicator where the caller wanted it, as its init ends, well or not; once.
void end_init(ncclComm_t*& place, ncclComm_t comm);
/// Into its stream's capture, whose launches call `put_again`. Where CUDA does not record it NCCL keeps an
/// error with its words, and the communicator is of no use any more.
void record_launch(const Launch& launch, const std::function<void(cudaStream_t)>& put_again,
                   ncclResult_t& error, std::string& words);

// What each fake says of its communicators, under the mutex of the fake runtime.

int rank_of(const FakeComm& comm);
int ranks_of(const FakeComm& comm);
/// Once the group of calls has ended.
ncclResult_t issue(const std::shared_ptr<Launch>& launch);
/// Its stream has come there. @return  whether it has run; if not, it is tried again.
bool run_launch(Launch& launch);
/// Aborts in the group that ends have come back.
void await_aborts(std::unique_lock<std::recursive_mutex>& lock);

}  // namespace jigsaw::testing::fake_nccl
