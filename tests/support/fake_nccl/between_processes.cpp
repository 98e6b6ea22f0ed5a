// NCCL between processes of one machine, for the program itself under mpirun: a rank has a fake device of its
// own, and messages are files. Calls and graphs are those of fake_nccl.cpp, and so is when memory is read and
// written; of what a program can do wrong it finds messages of unequal length and such that nobody took.
// A thread runs what has been issued, as devices do, whether or not somebody waits for it: peers may.
//
// JIGSAW_FAKE_NCCL=FOLDER  for the files; equal on all ranks.
// JIGSAW_FAKE_NCCL_VERSION=22505  that ncclGetVersion() says, in place of NCCL_VERSION_CODE.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <list>
#include <string>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "support/fake_cuda/devices.h"
#include "support/fake_nccl/launches.h"

using namespace jigsaw::testing::fake_nccl;  // NOLINT(google-build-using-namespace)

/// This rank of a communicator, whose files stand in a folder of its own.
struct FakeComm {
  std::filesystem::path folder;
  int rank = 0, ranks = 0;
  ncclResult_t error = ncclSuccess;
  bool aborted = false, finalized = false;
  std::vector<std::size_t> sent, expected;  ///< messages so far, by peer
  std::vector<std::shared_ptr<Launch>> to_put;
  std::thread::id caller;
  std::string words;
  ncclComm_t* place = nullptr;  ///< where it is stored once more as its init ends; null since then
};

namespace jigsaw::testing::fake_nccl {

namespace {

namespace fs = std::filesystem;
using fake_cuda::mutex;

/// A file that says something by being there.
void say(const FakeComm& comm, const std::string& what) {
  std::ofstream(comm.folder / concat(what, "-", comm.rank));
}
bool all_say(const FakeComm& comm, const std::string& what) {
  for (int rank = 0; rank < comm.ranks; ++rank) {
    if (!fs::exists(comm.folder / concat(what, "-", rank))) return false;
  }
  return true;
}
void hear_of_aborts(FakeComm& comm) {
  for (int rank = 0; rank < comm.ranks && comm.error == ncclSuccess; ++rank) {
    if (rank == comm.rank || !fs::exists(comm.folder / concat("gone-", rank))) continue;
    comm.error = ncclRemoteError;
    comm.words = concat("rank ", rank, " has gone");
  }
}

fs::path file_of(const FakeComm& comm, int from, int to, std::size_t number) {
  return comm.folder / concat("message-", from, "-", to, "-", number);
}
void write(const FakeComm& comm, const Part& part) {
  const fs::path path = file_of(comm, comm.rank, part.peer, part.place), unfinished = path.string() + ".part";
  std::ofstream file(unfinished, std::ios::binary);
  file.write(reinterpret_cast<const char*>(part.memory), static_cast<std::streamsize>(part.bytes()));
  file.close();
  if (!file) fail(concat("cannot write ", unfinished.string()));
  fs::rename(unfinished, path);
}
/// Nothing where it has not come yet.
bool has_come(const FakeComm& comm, const Part& part) {
  return fs::exists(file_of(comm, part.peer, comm.rank, part.place));
}
Bytes take(FakeComm& comm, const Part& part) {
  const fs::path path = file_of(comm, part.peer, comm.rank, part.place);
  Bytes bytes(fs::file_size(path));
  std::ifstream(path, std::ios::binary)
      .read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  fs::remove(path);
  if (bytes.size() != part.bytes()) {
    comm.error = ncclInvalidUsage;
    comm.words =
        concat("rank ", part.peer, " sent ", bytes.size(), " bytes, and ", part.bytes(), " were expected");
    bytes.resize(part.bytes());
  }
  return bytes;
}

/// The messages that a collective is made of, and all that it receives one behind the other.
void spread(Launch& launch) {
  const FakeComm& comm = *launch.comm;
  const Part from = launch.sends.front(), to = launch.receives.front();
  launch.sends.clear();
  launch.receives.clear();
  for (int peer = 0; peer < comm.ranks; ++peer) {
    Part out = from, in = to;
    out.peer = in.peer = peer;
    const auto at = static_cast<std::size_t>(peer);
    if (launch.kind == Kind::kAllGather) {
      in.count = from.count;
      in.memory += at * in.bytes();
    }
    if (launch.kind == Kind::kReduceScatter) {
      out.count = to.count;
      out.memory += at * out.bytes();
    }
    if (launch.kind != Kind::kBroadcast || comm.rank == launch.root) launch.sends.push_back(out);
    if (launch.kind != Kind::kBroadcast || peer == launch.root) launch.receives.push_back(in);
  }
}

bool adds(const Launch& launch) {
  return launch.kind == Kind::kAllReduce || launch.kind == Kind::kReduceScatter;
}

/// Its stream has come there: what is sent is read, what is received becomes NaN.
void begin(Launch& launch) {
  if (std::exchange(launch.begun, true)) return;
  for (const Part& part : launch.sends) write(*launch.comm, part);
  for (const Part& part : launch.receives) std::memset(part.memory, kNaNByte, part.bytes());
}

/// What has come goes to its place. Sums are added from the last rank on, unlike the program's own.
void deliver(Launch& launch) {
  std::vector<Bytes> came;
  for (const Part& part : launch.receives) came.push_back(take(*launch.comm, part));
  if (adds(launch)) {
    const Part& to = launch.receives.front();
    Bytes sum(to.bytes());
    for (auto values = came.rbegin(); values != came.rend(); ++values) add(to.type, sum, values->data());
    std::ranges::copy(sum, to.memory);
    return;
  }
  for (std::size_t i = 0; i < came.size(); ++i) std::ranges::copy(came[i], launch.receives[i].memory);
}

/// The device's own thread.
class Carrier {
 public:
  static Carrier& all() {
    static Carrier carrier;
    return carrier;
  }
  /// Under mutex().
  void carry(std::shared_ptr<Launch> launch) {
    launches_.push_back(std::move(launch));
    changed_.notify_all();
  }

 private:
  void work(const std::stop_token& stop) {
    std::unique_lock lock(mutex());
    while (changed_.wait(lock, stop, [this] { return !launches_.empty(); }) && !stop.stop_requested()) {
      const std::size_t before = launches_.size();
      std::erase_if(launches_, [](const std::shared_ptr<Launch>& launch) { return has_run(*launch); });
      if (launches_.size() < before) fake_cuda::work_may_go_on();
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      lock.lock();
    }
  }

  /// Whether its stream is behind it by now.
  static bool has_run(Launch& launch) {
    const auto comes = [&] {
      return std::ranges::all_of(launch.receives,
                                 [&](const Part& part) { return has_come(*launch.comm, part); });
    };
    try {
      return (!launch.begun || launch.done || launch.comm->aborted || comes()) &&
             fake_cuda::run(*launch.kept, launch.number);
    } catch (const std::exception&) {  // of other work: who waits for the stream tries it, too
      return false;
    }
  }

  std::list<std::shared_ptr<Launch>> launches_;  ///< in streams, as they were issued
  std::condition_variable_any changed_;
  std::jthread thread_{[this](const std::stop_token& stop) { work(stop); }};
};

/// Gives each message its number among those of its two ranks.
void enter(Launch& launch) {
  FakeComm& comm = *launch.comm;
  for (Part& part : launch.sends) part.place = comm.sent[static_cast<std::size_t>(part.peer)]++;
  for (Part& part : launch.receives) part.place = comm.expected[static_cast<std::size_t>(part.peer)]++;
}

void put_and_carry(const std::shared_ptr<Launch>& launch) {
  put(launch);
  Carrier::all().carry(launch);
}

void record(const std::shared_ptr<const Launch>& launch) {
  const auto put_again = [launch](cudaStream_t into) {
    const auto again = std::make_shared<Launch>(*launch);
    again->captured = false;
    again->stream = into;
    enter(*again);
    put_and_carry(again);
  };
  record_launch(*launch, put_again, launch->comm->error, launch->comm->words);
}

/// The last rank to leave a communicator takes its files away.
void leave(const FakeComm& comm) {
  say(comm, "left");
  if (!all_say(comm, "left")) return;
  std::error_code gone;  // where two are the last
  for (const auto& entry : fs::directory_iterator(comm.folder, gone)) {
    if (entry.path().filename().string().starts_with("message-"))
      std::cerr << concat("fake NCCL: nobody took ", entry.path().filename().string(), "\n");
  }
  fs::remove_all(comm.folder, gone);
}

}  // namespace

bool run_launch(Launch& launch) {
  FakeComm& comm = *launch.comm;
  if (launch.done || comm.aborted) return true;
  hear_of_aborts(comm);
  if (comm.error != ncclSuccess) return false;
  try {
    begin(launch);
    for (const Part& part : launch.receives) {
      if (!has_come(comm, part)) return false;
    }
    deliver(launch);
  } catch (const std::exception& error) {  // of files
    comm.error = ncclSystemError;
    comm.words = error.what();
    return false;
  }
  for (const Part& part : launch.sends) fake_cuda::touched(part.memory, part.bytes(), false);
  for (const Part& part : launch.receives) fake_cuda::touched(part.memory, part.bytes(), true);
  launch.done = true;
  fake_cuda::work_may_go_on();
  return true;
}

int rank_of(const FakeComm& comm) {
  return comm.rank;
}
int ranks_of(const FakeComm& comm) {
  return comm.ranks;
}
ncclResult_t issue(const std::shared_ptr<Launch>& launch) {
  FakeComm& comm = *launch->comm;
  if (comm.error != ncclSuccess) return comm.error;
  if (launch->kind != Kind::kMessages) spread(*launch);
  comm.to_put.push_back(launch);
  comm.caller = std::this_thread::get_id();
  launch->captured = fake_cuda::capturing(launch->stream);
  if (!launch->captured) enter(*launch);
  return ncclInProgress;
}
void await_aborts(std::unique_lock<std::recursive_mutex>&) {}

}  // namespace jigsaw::testing::fake_nccl

ncclResult_t ncclGetVersion(int* version) {
  const char* const text = std::getenv("JIGSAW_FAKE_NCCL_VERSION");
  *version = text == nullptr ? NCCL_VERSION_CODE : std::atoi(text);
  return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static int last = 0;
  const std::lock_guard lock(mutex());
  std::memset(id->internal, 0, sizeof(id->internal));
  const std::string name = jigsaw::concat(getpid(), "-", ++last);
  std::ranges::copy(name, id->internal);
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  const std::lock_guard lock(mutex());
  const char* const folder = std::getenv("JIGSAW_FAKE_NCCL");
  if (folder == nullptr) return ncclSystemError;
  if (config->blocking != 0) return ncclInvalidUsage;
  const auto count = static_cast<std::size_t>(ranks);
  // Never freed: work in streams names it.
  *comm = new FakeComm{.folder = std::filesystem::path(folder) / id.internal,
                       .rank = rank,
                       .ranks = ranks,
                       .sent = std::vector<std::size_t>(count),
                       .expected = std::vector<std::size_t>(count),
                       .place = comm};
  std::filesystem::create_directories((*comm)->folder);
  say(**comm, "joined");
  return ncclInProgress;
}
ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  const std::lock_guard lock(mutex());
  if (!std::exchange(comm->finalized, true)) say(*comm, "finalized");
  return ncclInProgress;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const std::lock_guard lock(mutex());
  leave(*comm);
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const std::lock_guard lock(mutex());
  comm->aborted = true;
  end_init(comm->place, comm);
  say(*comm, "gone");
  jigsaw::testing::fake_cuda::work_may_go_on();
  return ncclSuccess;
}
/// What this thread issued comes into its stream, or the capture of it, now.
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  const std::lock_guard lock(mutex());
  if (!comm->finalized) hear_of_aborts(*comm);
  *error = comm->error;
  if (comm->error != ncclSuccess) {
    end_init(comm->place, comm);
    return ncclSuccess;
  }
  *error = ncclInProgress;
  if (comm->finalized) {
    // Who has finalised may have left, and the last took the files away.
    if (!std::filesystem::exists(comm->folder) || all_say(*comm, "finalized")) *error = ncclSuccess;
    return ncclSuccess;
  }
  if (!all_say(*comm, "joined")) return ncclSuccess;
  end_init(comm->place, comm);
  if (!comm->to_put.empty() && comm->caller != std::this_thread::get_id()) return ncclSuccess;
  for (const auto& launch : std::exchange(comm->to_put, {})) {
    if (launch->captured) record(launch);
    if (!launch->captured) put_and_carry(launch);
  }
  *error = comm->error;
  return ncclSuccess;
}
const char* ncclGetLastError(ncclComm_t comm) {
  return comm->words.c_str();
}
