#include "nccl/group.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <future>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace jigsaw::inline nccl {

namespace {

constexpr const char* kOrder = "NCCL_LAUNCH_ORDER_IMPLICIT";

/// Sets NCCL's environment variables, which NCCL reads once. Set as the program starts, before there are
/// threads: setenv() is not safe while another thread reads the environment.
[[maybe_unused]] const bool kEnvironmentIsReady = [] {
  setenv(kOrder, "1", 0);
  // Memory that graphs send stands where it is mapped (cuMemMap), which is not for other processes.
  setenv("NCCL_GRAPH_REGISTER", "0", 0);
  return true;
}();

/// Pause between polls of a busy communicator: none in the first millisecond, within which most calls get
/// into their stream.
void pause(std::chrono::steady_clock::time_point begun) {
  constexpr std::chrono::milliseconds kShort{1};
  if (std::chrono::steady_clock::now() - begun < kShort) return std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::microseconds(100));
}

bool is_well(ncclResult_t state) {
  return state == ncclSuccess || state == ncclInProgress;
}
/// What NCCL says where a peer, or the way to it, is gone.
bool is_of_peers(ncclResult_t state) {
  return state == ncclRemoteError || state == ncclSystemError;
}

void abort_together(const std::vector<ncclComm_t>& comms) {
  ncclGroupStart();
  for (const ncclComm_t comm : comms) ncclCommAbort(comm);
  ncclGroupEnd();
}

int current_device() {
  int device = 0;
  cudaGetDevice(&device);
  return device;
}

}  // namespace

bool launches_in_order() {
  const char* const order = std::getenv(kOrder);
  return order != nullptr && std::string_view(order) == "1";
}

NcclJob::NcclJob(const NcclOptions& options, bool in_order)
    : options_(options), in_order_(in_order), device_(current_device()) {}

NcclJob::~NcclJob() {
  {
    const Lock lock(calls_);
    ends_ = true;
  }
  changed_.notify_all();
  if (watcher_.joinable()) watcher_.join();
}

void NcclJob::check() {
  Lock lock(calls_);
  look(lock);
  throw_if_failed(lock);
}

void NcclJob::throw_if_failed(const Lock&) const {
  if (failure_.empty()) return;
  if (by_peer_) throw PeerError(failure_);
  throw CommError(failure_);
}

/// A call of NCCL that does not come back must not keep the job from ending.
void NcclJob::abort(const std::string& reason) {
  const auto begun = std::chrono::steady_clock::now();
  const std::chrono::duration<double> most(options_.most_abort_seconds);
  Lock lock(calls_, std::defer_lock);
  while (!lock.try_lock()) {
    if (std::chrono::steady_clock::now() - begun > most) return;
    pause(begun);
  }
  fail(lock, reason);
}

void NcclJob::fail(Lock& lock, const std::string& reason, bool by_peer) noexcept {
  if (!failure_.empty()) return;
  failure_ = reason;
  by_peer_ = by_peer;
  std::vector<ncclComm_t> comms;
  std::vector<ncclComm_t*> places;
  for (NcclGroup* const group : groups_) {
    if (group->comm_ == nullptr) continue;
    comms.push_back(std::exchange(group->comm_, nullptr));
    places.push_back(group->place_.release());
  }
  if (comms.empty()) return;
  lock.unlock();
  // Until an abort has come back NCCL may store something there: where none does they are never freed.
  end([comms, places] {
    abort_together(comms);
    for (const ncclComm_t* const place : places) delete place;
  });
  lock.lock();
}

/// Runs `work` in a thread that is left alone where it takes too long. That thread makes this rank's device
/// current: a new thread's is the first one, on which NCCL would make a context.
void NcclJob::end(const std::function<void()>& work) const noexcept {
  try {
    const auto done = std::make_shared<std::promise<void>>();
    std::thread([work, done, device = device_] {
      cudaSetDevice(device);
      work();
      done->set_value();
    }).detach();
    done->get_future().wait_for(std::chrono::duration<double>(options_.most_abort_seconds));
  } catch (const std::exception&) {
    // The machine has no thread to spare: the process ends without.
  }
}

/// Asks all communicators.
void NcclJob::look(Lock& lock) {
  for (const NcclGroup* const group : groups_) {
    const ncclResult_t state = group->state();
    if (is_well(state)) continue;
    return fail(lock,
                concat("NCCL failed on ", group->label_, " (rank ", group->rank_, " of ", group->size_,
                       "): ", group->words(state)),
                is_of_peers(state));
  }
}

void NcclJob::watch() {
  Lock lock(calls_);
  while (!ends_) {
    changed_.wait_for(lock, std::chrono::duration<double>(options_.poll_seconds), [this] { return ends_; });
    if (!ends_) look(lock);
  }
}

void NcclJob::add(const Lock&, NcclGroup& group) {
  groups_.push_back(&group);
  if (!watcher_.joinable()) watcher_ = std::thread(&NcclJob::watch, this);
}

NcclGroup::NcclGroup(std::shared_ptr<NcclJob> job, std::string label, int rank, int size)
    : job_(std::move(job)),
      label_(std::move(label)),
      rank_(rank),
      size_(size),
      exceptions_(std::uncaught_exceptions()) {}

NcclGroup::~NcclGroup() {
  NcclJob::Lock lock(job_->calls_);
  const bool orderly = std::uncaught_exceptions() <= exceptions_;
  if (comm_ != nullptr && !orderly)
    job_->fail(lock, concat("an error ended ", label_, " on rank ", rank_, " of ", size_));
  if (comm_ != nullptr) finish(lock);
  std::erase(job_->groups_, this);
}

/// Returns when all ranks finish, or one of them fails.
void NcclGroup::finish(NcclJob::Lock& lock) {
  ncclCommFinalize(comm_);
  const auto begun = std::chrono::steady_clock::now();
  while (comm_ != nullptr && job_->failure_.empty()) {
    ncclResult_t state = ncclInternalError;
    ncclCommGetAsyncError(comm_, &state);
    if (!is_well(state))
      job_->fail(lock, concat("NCCL failed at the end of ", label_, ": ", words(state)), is_of_peers(state));
    const bool done = comm_ != nullptr && state == ncclSuccess;
    const ncclComm_t comm = done ? std::exchange(comm_, nullptr) : nullptr;
    lock.unlock();
    if (done) {
      job_->end([comm] { ncclCommDestroy(comm); });
    } else {
      pause(begun);
    }
    lock.lock();
  }
}

void NcclGroup::open(const Broadcast& broadcast) {
  {
    const NcclJob::Lock lock(job_->calls_);
    job_->throw_if_failed(lock);
    if (comm_ != nullptr) return;
  }
  ncclUniqueId id{};
  std::string text;
  if (rank_ == 0) {
    check(ncclGetUniqueId(&id), "name a group");
    text.assign(id.internal, sizeof(id.internal));
  }
  text = broadcast(std::move(text));
  if (text.size() != sizeof(id.internal)) throw CommError("the name of an NCCL group came cut short");
  std::memcpy(id.internal, text.data(), text.size());
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  {
    const NcclJob::Lock lock(job_->calls_);
    job_->throw_if_failed(lock);
    job_->add(lock, *this);
    place_ = std::make_unique<ncclComm_t>(nullptr);
    const ncclResult_t status = ncclCommInitRankConfig(place_.get(), size_, id, rank_, &config);
    // NCCL's own thread may store it there at the same time.
    comm_ = std::atomic_ref<ncclComm_t>(*place_).load();
    check(status, "connect the ranks");
  }
  settle("connect the ranks");
  const NcclJob::Lock lock(job_->calls_);
  place_.reset();
}

void NcclGroup::run(const char* what, const std::function<void(ncclComm_t)>& issue) {
  {
    const NcclJob::Lock lock(job_->calls_);
    job_->throw_if_failed(lock);
    check(ncclGroupStart(), what);
    try {
      issue(comm_);
    } catch (...) {
      ncclGroupEnd();
      throw;
    }
    check(ncclGroupEnd(), what);
  }
  settle(what);
}

/// Waits until issued work is in its stream: calls return before.
void NcclGroup::settle(const char* what) {
  const auto begun = std::chrono::steady_clock::now();
  for (;;) {
    {
      NcclJob::Lock lock(job_->calls_);
      job_->throw_if_failed(lock);
      ncclResult_t state = ncclSuccess;
      check(ncclCommGetAsyncError(comm_, &state), what);
      if (state == ncclSuccess) return;
      if (state != ncclInProgress) {
        job_->fail(lock, concat("NCCL could not ", what, " on ", label_, ": ", words(state)),
                   is_of_peers(state));
        job_->throw_if_failed(lock);
      }
    }
    pause(begun);
  }
}

void NcclGroup::check(ncclResult_t status, const char* what) const {
  if (is_well(status)) return;
  throw CommError(concat("NCCL could not ", what, " on ", label_, ": ", words(status)));
}

ncclResult_t NcclGroup::state() const {
  ncclResult_t state = ncclSuccess;
  return comm_ == nullptr || ncclCommGetAsyncError(comm_, &state) != ncclSuccess ? ncclSuccess : state;
}

/// On one line.
std::string NcclGroup::words(ncclResult_t status) const {
  std::string text = ncclGetErrorString(status);
  const char* const details = comm_ == nullptr ? nullptr : ncclGetLastError(comm_);
  if (details != nullptr && *details != '\0') text = concat(text, " (", details, ")");
  std::ranges::replace(text, '\n', ' ');
  return text;
}

}  // namespace jigsaw::inline nccl
