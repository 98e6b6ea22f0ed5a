#include "support/fake_nccl/fake_nccl.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "support/fake_cuda/devices.h"
#include "support/fake_nccl/launches.h"

namespace jigsaw::testing::fake_nccl {

namespace {

using fake_cuda::mutex;

using Launches = std::vector<std::shared_ptr<Launch>>;

/// The ranks of one communicator.
struct Clique {
  int ranks = 0;
  std::vector<FakeComm*> members;  ///< null before they join and after they leave
  int joined = 0, finalized = 0;
  int gone = -1;  ///< the first rank that has aborted
  /// By sender and receiver: their launches, in order.
  std::map<std::pair<int, int>, std::vector<std::pair<std::shared_ptr<Launch>, std::size_t>>> sends, receives;
  std::map<int, Launches> collectives;  ///< by rank
};

}  // namespace

}  // namespace jigsaw::testing::fake_nccl

using namespace jigsaw::testing::fake_nccl;  // NOLINT(google-build-using-namespace)

/// One rank of a clique.
struct FakeComm {
  std::shared_ptr<Clique> clique;
  int rank = 0, device = 0;
  ncclResult_t error = ncclSuccess;
  bool aborted = false, finalized = false;
  bool gone = false;  ///< destroyed, or of a job that was forgotten
  Launches launches;
  Launches to_put;                                    ///< issued, and not in their stream yet
  std::vector<std::weak_ptr<const Launch>> captured;  ///< gone with the graphs that they are in
  std::thread::id caller;
  std::string words;
  ncclComm_t* place = nullptr;  ///< where it is stored once more as its init ends; null since then
};

namespace jigsaw::testing::fake_nccl {

namespace {

/// All of the process.
struct Nccl {
  std::int64_t last_id = 0;
  std::map<std::string, std::shared_ptr<Clique>> cliques;
  std::vector<std::string> mistakes;
  Work work;
  bool init_is_full = false;
  int failing_init = -1, failing_work = -1, stopped = -1;
  int spoiled = -1, spoiled_after = 0;  ///< a rank, and what it receives right before
  /// By device and peer's device: what the two called together, in order. Cliques by address.
  std::map<std::pair<int, int>, std::deque<const Clique*>> order;
  /// By device what has not begun, as it was issued.
  std::map<int, std::deque<std::shared_ptr<Launch>>> to_begin;
  std::vector<std::unique_ptr<FakeComm>> comms;  ///< kept, for work in streams names them
  Aborts aborts = Aborts::kAtOnce;
  std::int64_t jobs = 0;  ///< that were forgotten
  std::condition_variable_any ending;

  /// Never destroyed: threads that were left alone may wait in an abort when main() has ended.
  static Nccl& all() {
    static Nccl& nccl = *new Nccl;
    return nccl;
  }
};

thread_local std::vector<FakeComm*> group_aborts;

ncclResult_t mistake(const std::string& what) {
  Nccl::all().mistakes.push_back(what);
  return ncclInvalidUsage;
}
/// Within work, whose caller hears of nothing else.
[[noreturn]] void mistaken(const std::string& what) {
  mistake(what);
  fail(what);
}

/// What was called together with a peer is called there in the same order.
void check_order(const FakeComm& comm, int peer) {
  const FakeComm* const other = comm.clique->members[static_cast<std::size_t>(peer)];
  if (other == nullptr || peer == comm.rank) return;
  auto& mine = Nccl::all().order[{comm.device, other->device}];
  auto& its = Nccl::all().order[{other->device, comm.device}];
  if (its.empty()) {
    mine.push_back(comm.clique.get());
    return;
  }
  const Clique* const expected = its.front();
  its.pop_front();
  if (expected != comm.clique.get())
    mistake(concat("rank ", comm.rank, " calls its communicators in another order than its peer ", peer));
}

bool overlap(const Part& a, const Part& b) {
  return a.memory < b.memory + b.bytes() && b.memory < a.memory + a.bytes();
}

bool is_within_received(const Launch& launch, const Part& sent) {
  return std::ranges::any_of(launch.receives, [&](const Part& part) { return overlap(part, sent); });
}

/// Its stream has come there: what is sent is read, what is received becomes NaN.
void begin(Launch& launch) {
  if (std::exchange(launch.begun, true)) return;
  for (Part& part : launch.sends) part.snapshot.assign(part.memory, part.memory + part.bytes());
  for (const Part& part : launch.receives) std::memset(part.memory, kNaNByte, part.bytes());
}

/// What was issued before on this device, in whatever stream, begins before (NCCL_LAUNCH_ORDER_IMPLICIT);
/// false where some of it cannot yet.
bool begin_those_before(const Launch& launch) {
  auto& queue = Nccl::all().to_begin[launch.comm->device];
  while (!queue.empty() && queue.front().get() != &launch && !launch.begun) {
    const std::shared_ptr<Launch> first = queue.front();
    const bool open = !first->begun && !first->done && !first->comm->aborted;
    if (open) {
      if (first->number == 0 || !fake_cuda::run(*first->stream, first->number - 1)) return false;
      begin(*first);
    }
    if (!queue.empty() && queue.front() == first) queue.pop_front();
  }
  return true;
}

/// Nobody wrote meanwhile.
void check_untouched(const Launch& launch) {
  for (const Part& part : launch.sends) {
    if (is_within_received(launch, part)) continue;
    if (std::memcmp(part.snapshot.data(), part.memory, part.bytes()) != 0)
      mistaken(concat("rank ", launch.comm->rank, " writes memory while it is sent to rank ", part.peer));
  }
  for (const Part& part : launch.receives) {
    if (std::any_of(part.memory, part.memory + part.bytes(),
                    [](std::byte byte) { return byte != static_cast<std::byte>(kNaNByte); }))
      mistaken(concat("rank ", launch.comm->rank, " writes memory into which rank ", part.peer, " sends"));
  }
}

/// The launches that this one takes, of a collective those of all ranks in order; nothing while some have not
/// been issued.
std::optional<Launches> partners(const Launch& launch) {
  Clique& clique = *launch.comm->clique;
  Launches found;
  if (launch.kind != Kind::kMessages) {
    for (int rank = 0; rank < clique.ranks; ++rank) {
      const Launches& its = clique.collectives[rank];
      if (its.size() <= launch.place) return std::nullopt;
      found.push_back(its[launch.place]);
    }
    return found;
  }
  const auto match = [&](const Part& part, const auto& others) {
    if (others.size() <= part.place) return false;
    const std::shared_ptr<Launch>& other = others[part.place].first;
    if (std::ranges::find(found, other) == found.end()) found.push_back(other);
    return true;
  };
  for (const Part& part : launch.sends) {
    if (!match(part, clique.receives[{launch.comm->rank, part.peer}])) return std::nullopt;
  }
  for (const Part& part : launch.receives) {
    if (!match(part, clique.sends[{part.peer, launch.comm->rank}])) return std::nullopt;
  }
  return found;
}

void deliver_messages(const Launch& launch) {
  for (const Part& to : launch.receives) {
    const auto& [from, index] = launch.comm->clique->sends[{to.peer, launch.comm->rank}][to.place];
    std::memcpy(to.memory, from->sends[index].snapshot.data(), to.bytes());
  }
}

/// `all` are the launches of all ranks. Sums are added from the last rank on, unlike the program's own.
void deliver_collective(Launch& launch, const std::vector<std::shared_ptr<Launch>>& all) {
  const Part& to = launch.receives.front();
  if (launch.kind == Kind::kBroadcast) {
    const Part& from = all[static_cast<std::size_t>(launch.root)]->sends.front();
    std::memcpy(to.memory, from.snapshot.data(), to.bytes());
    return;
  }
  if (launch.kind == Kind::kAllGather) {
    std::byte* memory = to.memory;
    for (const auto& each : all) {
      const Bytes& sent = each->sends.front().snapshot;
      memory = std::copy(sent.begin(), sent.end(), memory);
    }
    return;
  }
  const std::size_t first =
      launch.kind == Kind::kReduceScatter ? to.bytes() * static_cast<std::size_t>(launch.comm->rank) : 0;
  Bytes sum(to.bytes());
  for (auto each = all.rbegin(); each != all.rend(); ++each) {
    const std::byte* const values = (*each)->sends.front().snapshot.data() + first;
    add(to.type, sum, values);
  }
  std::ranges::copy(sum, to.memory);
}

/// The first number that the rank receives in its turn becomes another.
void spoil_received(Launch& launch) {
  constexpr std::byte kExponent{0x40};
  Nccl& nccl = Nccl::all();
  if (launch.comm->rank != nccl.spoiled || launch.receives.empty()) return;
  if (nccl.spoiled_after-- > 0) return;
  nccl.spoiled = -1;
  const Part& part = launch.receives.front();
  part.memory[part.bytes() / part.count - 1] ^= kExponent;
}

void check_alike(const Launch& launch, const Launch& other) {
  if (launch.kind == Kind::kMessages) return;
  const Part &mine = launch.sends.front(), &its = other.sends.front();
  if (launch.kind != other.kind || launch.root != other.root || mine.count != its.count ||
      mine.type != its.type)
    mistaken(concat("ranks ", launch.comm->rank, " and ", other.comm->rank, " disagree on a collective"));
}

/// When all have what it sends, and its memory was looked at.
void forget(Launch& launch, std::size_t others) {
  if (!launch.done || launch.taken < others) return;
  for (Part& part : launch.sends) part.snapshot = {};
}

/// A message and the one that it meets are alike.
ncclResult_t check_counts(Clique& clique, int from, int to) {
  const auto& sends = clique.sends[{from, to}];
  const auto& receives = clique.receives[{from, to}];
  const std::size_t both = std::min(sends.size(), receives.size());
  for (std::size_t i = 0; i < both; ++i) {
    const Part& sent = sends[i].first->sends[sends[i].second];
    const Part& expected = receives[i].first->receives[receives[i].second];
    if (sent.count != expected.count || sent.type != expected.type) {
      return mistake(concat("rank ", from, " sends ", sent.count, " elements to rank ", to,
                            ", which expects ", expected.count));
    }
  }
  return ncclSuccess;
}

/// Gives a launch its places among those of its clique.
ncclResult_t enter(const std::shared_ptr<Launch>& launch) {
  FakeComm& comm = *launch->comm;
  Clique& clique = *comm.clique;
  std::vector<int> peers;
  for (const auto* parts : {&launch->sends, &launch->receives}) {
    for (const Part& part : *parts) peers.push_back(part.peer);
  }
  if (launch->kind != Kind::kMessages) {
    peers.clear();
    for (int rank = 0; rank < clique.ranks; ++rank) peers.push_back(rank);
  }
  std::ranges::sort(peers);
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  ncclResult_t worst = ncclSuccess;
  const auto add_to = [&](auto& lists, std::vector<Part>& parts, bool sends) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::pair key = sends ? std::pair(comm.rank, parts[i].peer) : std::pair(parts[i].peer, comm.rank);
      parts[i].place = lists[key].size();
      lists[key].emplace_back(launch, i);
      if (const ncclResult_t found = check_counts(clique, key.first, key.second); found != ncclSuccess)
        worst = found;
    }
  };
  if (launch->kind == Kind::kMessages) {
    add_to(clique.sends, launch->sends, true);
    add_to(clique.receives, launch->receives, false);
  } else {
    launch->place = clique.collectives[comm.rank].size();
    clique.collectives[comm.rank].push_back(launch);
  }
  const std::size_t before = Nccl::all().mistakes.size();
  for (const int peer : peers) {
    const FakeComm* const other = clique.members[static_cast<std::size_t>(peer)];
    if (other == nullptr || other->finalized)
      mistake(concat("rank ", comm.rank, " calls rank ", peer, ", which has gone"));
    check_order(comm, peer);
  }
  if (Nccl::all().mistakes.size() > before) worst = ncclInvalidUsage;
  comm.launches.push_back(launch);
  Nccl::all().to_begin[comm.device].push_back(launch);
  return worst == ncclSuccess ? ncclInProgress : worst;
}

/// Of a communicator that has failed since, what a graph launches stands in its stream until that is aborted.
void record(const std::shared_ptr<const Launch>& launch) {
  if (!fake_cuda::capturing(launch->stream)) {
    mistake(concat("rank ", launch->comm->rank, " ends a capture before what was called in it is recorded"));
    return;
  }
  launch->comm->captured.push_back(launch);
  const auto put_again = [launch](cudaStream_t into) {
    const auto again = std::make_shared<Launch>(*launch);
    again->captured = false;
    again->stream = into;
    if (again->comm->error == ncclSuccess && !again->comm->aborted) enter(again);
    put(again);
  };
  record_launch(*launch, put_again, launch->comm->error, launch->comm->words);
}

/// NCCL comes back to the thread's device, where it makes a context.
bool on_its_device(const FakeComm& comm) {
  return jigsaw::testing::fake_cuda::current_device() == comm.device;
}

/// Its work ends, and peers hear of it.
void begin_abort(FakeComm& comm) {
  comm.aborted = true;
  if (comm.clique->gone < 0) comm.clique->gone = comm.rank;
  for (FakeComm*& other : comm.clique->members) {
    if (other == &comm) {
      other = nullptr;
    } else if (other != nullptr && other->error == ncclSuccess) {
      other->error = ncclRemoteError;
      other->words = concat("rank ", comm.rank, " has gone");
    }
  }
  fake_cuda::work_may_go_on();
  Nccl::all().ending.notify_all();
}

/// Until what has begun may come back: see Aborts. Where ranks still connect an abort waits for NCCL's
/// thread, too.
void await_end(FakeComm& comm, std::unique_lock<std::recursive_mutex>& lock) {
  Nccl& nccl = Nccl::all();
  nccl.ending.wait(lock, [&, job = nccl.jobs] {
    if (nccl.jobs != job || nccl.aborts == Aborts::kAtOnce) return true;
    if (nccl.aborts == Aborts::kNever) return false;
    return !comm.aborted || std::ranges::none_of(nccl.comms, [&](const auto& other) {
      return other->device == comm.device && !other->aborted && !other->gone;
    });
  });
  end_init(comm.place, &comm);
}

/// What a rank that leaves has not got, or nobody has taken of it.
void check_matched(FakeComm& comm) {
  Clique& clique = *comm.clique;
  for (const auto& launch : comm.launches) {
    if (!launch->done) mistake(concat("rank ", comm.rank, " ends a communicator with work under way"));
  }
  if (!std::ranges::all_of(comm.captured, &std::weak_ptr<const Launch>::expired))
    mistake(concat("rank ", comm.rank, " ends a communicator that a graph calls, for which NCCL would wait"));
  for (int peer = 0; peer < clique.ranks; ++peer) {
    const auto more = [&](std::pair<int, int> key) {
      return clique.sends[key].size() > clique.receives[key].size() ? "sent" : "expected";
    };
    for (const auto& key : {std::pair(comm.rank, peer), std::pair(peer, comm.rank)}) {
      if (clique.sends[key].size() == clique.receives[key].size()) continue;
      mistake(concat("a message from rank ", key.first, " to rank ", key.second, " is ", more(key),
                     " by one of them alone"));
      FakeComm* const other = clique.members[static_cast<std::size_t>(peer)];
      if (other != nullptr) other->error = ncclRemoteError;
    }
  }
}

}  // namespace

bool run_launch(Launch& launch) {
  Nccl& nccl = Nccl::all();
  FakeComm& comm = *launch.comm;
  if (launch.done || comm.aborted) return true;
  if (comm.rank == nccl.stopped) return false;
  if (comm.rank == nccl.failing_work) {
    nccl.failing_work = -1;
    comm.error = ncclSystemError;
    comm.words = "the network broke";
  }
  if (comm.error != ncclSuccess) return false;
  if (!begin_those_before(launch)) return false;
  begin(launch);
  const std::optional<Launches> with = partners(launch);
  if (!with) return false;
  for (const auto& other : *with) {
    if (other.get() == &launch) continue;
    check_alike(launch, *other);
    if (other->comm->rank == nccl.stopped || other->number == 0) return false;
    if (!fake_cuda::run(*other->stream, other->number - 1) || !begin_those_before(*other)) return false;
    begin(*other);
  }
  check_untouched(launch);
  const bool messages = launch.kind == Kind::kMessages;
  if (messages) deliver_messages(launch);
  if (!messages) deliver_collective(launch, *with);
  spoil_received(launch);
  for (const Part& part : launch.sends) fake_cuda::touched(part.memory, part.bytes(), false);
  for (const Part& part : launch.receives) fake_cuda::touched(part.memory, part.bytes(), true);
  launch.done = true;
  for (const auto& other : *with) {
    ++other->taken;
    forget(*other, other->kind == Kind::kMessages ? partners(*other)->size() : with->size());
  }
  forget(launch, with->size());
  ++nccl.work.launches;
  nccl.work.messages += messages ? std::ssize(launch.sends) : 0;
  for (const Part& part : messages ? launch.sends : std::vector<Part>()) {
    const auto& taker = comm.clique->receives[{comm.rank, part.peer}][part.place].first;
    nccl.work.bytes[{comm.device, taker->comm->device}] += static_cast<std::int64_t>(part.bytes());
  }
  nccl.work.collectives += messages ? 0 : 1;
  fake_cuda::work_may_go_on();
  return true;
}

int rank_of(const FakeComm& comm) {
  return comm.rank;
}
int ranks_of(const FakeComm& comm) {
  return comm.clique->ranks;
}
ncclResult_t issue(const std::shared_ptr<Launch>& launch) {
  FakeComm& comm = *launch->comm;
  if (comm.error != ncclSuccess) return comm.error;
  if (comm.clique->joined < comm.clique->ranks)
    return mistake("a communicator is used before all ranks have joined");
  comm.to_put.push_back(launch);
  comm.caller = std::this_thread::get_id();
  launch->captured = fake_cuda::capturing(launch->stream);
  return launch->captured ? ncclInProgress : enter(launch);
}
void await_aborts(std::unique_lock<std::recursive_mutex>& lock) {
  for (FakeComm* const comm : std::exchange(group_aborts, {})) await_end(*comm, lock);
}

std::vector<std::string> take_mistakes() {
  const std::lock_guard lock(mutex());
  return std::exchange(Nccl::all().mistakes, {});
}
std::map<int, std::int64_t> Work::out_of_nodes(int devices) const {
  std::map<int, std::int64_t> sent;
  for (const auto& [pair, count] : bytes) {
    if (pair.first / devices != pair.second / devices) sent[pair.first / devices] += count;
  }
  return sent;
}
Work take_work() {
  const std::lock_guard lock(mutex());
  return std::exchange(Nccl::all().work, {});
}
void fail_next_init(int rank, bool for_memory) {
  const std::lock_guard lock(mutex());
  Nccl::all().failing_init = rank;
  Nccl::all().init_is_full = for_memory;
}
void fail_next_work(int rank) {
  const std::lock_guard lock(mutex());
  Nccl::all().failing_work = rank;
}
void start_anew() {
  const std::lock_guard lock(mutex());
  Nccl& nccl = Nccl::all();
  nccl.cliques.clear();
  nccl.order.clear();
  nccl.to_begin.clear();
  nccl.mistakes.clear();
  nccl.work = {};
  nccl.failing_init = nccl.failing_work = nccl.stopped = nccl.spoiled = -1;
  nccl.aborts = Aborts::kAtOnce;
  ++nccl.jobs;
  for (const auto& comm : nccl.comms) comm->gone = true;
  nccl.ending.notify_all();
}
void set_aborts(Aborts aborts) {
  const std::lock_guard lock(mutex());
  Nccl::all().aborts = aborts;
  Nccl::all().ending.notify_all();
}
void spoil(int rank, int after) {
  const std::lock_guard lock(mutex());
  Nccl::all().spoiled = rank;
  Nccl::all().spoiled_after = after;
}
void stop(int rank) {
  const std::lock_guard lock(mutex());
  Nccl::all().stopped = rank;
}
int connecting() {
  const std::lock_guard lock(mutex());
  return static_cast<int>(std::ranges::count_if(
      Nccl::all().comms, [](const auto& comm) { return comm->place != nullptr && !comm->gone; }));
}

}  // namespace jigsaw::testing::fake_nccl

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const std::lock_guard lock(mutex());
  std::memset(id->internal, 0, sizeof(id->internal));
  std::strncpy(id->internal, jigsaw::concat("clique ", ++Nccl::all().last_id).c_str(),
               sizeof(id->internal) - 1);
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  const std::lock_guard lock(mutex());
  if (config->blocking != 0) return mistake("a communicator that blocks");
  std::shared_ptr<Clique>& clique = Nccl::all().cliques[id.internal];
  if (!clique) {
    clique = std::make_shared<Clique>();
    clique->ranks = ranks;
    clique->members.resize(static_cast<std::size_t>(ranks));
  }
  if (clique->ranks != ranks || rank < 0 || rank >= ranks) return ncclInvalidArgument;
  FakeComm*& member = clique->members[static_cast<std::size_t>(rank)];
  if (member != nullptr) return mistake(jigsaw::concat("rank ", rank, " joins a communicator twice"));
  member = Nccl::all().comms.emplace_back(std::make_unique<FakeComm>()).get();
  *comm = member;
  member->place = comm;
  member->clique = clique;
  member->rank = rank;
  member->device = jigsaw::testing::fake_cuda::current_device();
  if (std::exchange(Nccl::all().failing_init,
                    Nccl::all().failing_init == rank ? -1 : Nccl::all().failing_init) == rank) {
    const bool full = std::exchange(Nccl::all().init_is_full, false);
    member->error = full ? ncclUnhandledCudaError : ncclSystemError;
    member->words = full ? "Cuda failure 2 'out of memory'" : "no way to rank 0";
  }
  if (clique->gone >= 0) {
    member->error = ncclRemoteError;
    member->words = jigsaw::concat("rank ", clique->gone, " has gone");
  }
  for (const FakeComm* const other : clique->members) {
    if (other == nullptr || other == member || other->device != member->device) continue;
    member->error = ncclInvalidUsage;
    member->words = jigsaw::concat("duplicate GPU: ranks ", other->rank, " and ", rank, " are on one device");
  }
  ++clique->joined;
  return member->error == ncclInvalidUsage ? ncclInvalidUsage : ncclInProgress;
}
ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  const std::lock_guard lock(mutex());
  if (comm->aborted || comm->gone) return mistake("a communicator is finalised that is no more");
  check_matched(*comm);
  if (!std::exchange(comm->finalized, true)) ++comm->clique->finalized;
  return ncclInProgress;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  std::unique_lock lock(mutex());
  if (!comm->finalized) return mistake("a communicator is destroyed that was not finalised");
  if (!on_its_device(*comm)) mistake("a communicator is destroyed in a thread with another device");
  comm->clique->members[static_cast<std::size_t>(comm->rank)] = nullptr;
  comm->launches.clear();
  comm->gone = true;
  Nccl::all().ending.notify_all();
  await_end(*comm, lock);
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  std::unique_lock lock(mutex());
  if (comm->aborted || comm->gone) return mistake("a communicator is aborted that is no more");
  if (!on_its_device(*comm)) mistake("a communicator is aborted in a thread with another device");
  begin_abort(*comm);
  if (in_group()) {
    group_aborts.push_back(comm);
  } else {
    await_end(*comm, lock);
  }
  return ncclSuccess;
}
/// What this thread issued comes into its stream, or the capture of it, now.
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  const std::lock_guard lock(mutex());
  if (comm->aborted) return mistake("a communicator is asked after its abort");
  const Clique& clique = *comm->clique;
  *error = comm->error;
  if (comm->error != ncclSuccess || clique.joined == clique.ranks) end_init(comm->place, comm);
  if (comm->error != ncclSuccess) return ncclSuccess;
  *error = ncclInProgress;
  if (clique.joined < clique.ranks) return ncclSuccess;
  if (comm->finalized && clique.finalized < clique.ranks) return ncclSuccess;
  if (!comm->to_put.empty() && comm->caller != std::this_thread::get_id()) return ncclSuccess;
  for (const auto& launch : std::exchange(comm->to_put, {})) {
    if (launch->captured) record(launch);
    if (!launch->captured) put(launch);
  }
  *error = comm->error;
  return ncclSuccess;
}
const char* ncclGetLastError(ncclComm_t comm) {
  return comm->words.c_str();
}
