#pragma once
#include <nccl.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "nccl/nccl_communicator.h"

namespace jigsaw::inline nccl {

class NcclGroup;

/// Whether NCCL launches the kernels of all communicators of a device in the order in which they were called:
/// unless NCCL_LAUNCH_ORDER_IMPLICIT forbids it. So two communicators in two streams do not
/// wait for each other in a circle: all ranks call them in one order, every wait of a stream is for what was
/// called before, and so of the calls that are not done the first one has all that it needs on all ranks.
/// CUDA keeps the order as far as it can: where blocks of the more urgent one begin first after all, both
/// must fit the device, which two kernels of NCCL's at most 32 blocks do on anything larger than a slice of a
/// GPU. Without that order, a kernel that waits for its peers could occupy the multiprocessors on which
/// another kernel must run first.
bool launches_in_order();

/// What all NCCL communicators of a rank share: one lock for calls of NCCL, the first failure, and a thread
/// that looks for what goes wrong while the rank waits for its device. From the first failure on every call
/// throws CommError. It aborts all communicators, so that what stands in streams ends, and all together: an
/// abort may wait for the device, which a kernel of another communicator keeps, and, as the end of a
/// communicator may, for a graph that knows it. So both happen without the lock, in a thread that is waited
/// for no longer than NcclOptions::most_abort_seconds.
class NcclJob {
 public:
  /// On the rank's current device.
  /// @param in_order  launches_in_order(), on all ranks.
  NcclJob(const NcclOptions& options, bool in_order);
  ~NcclJob();
  NcclJob(const NcclJob&) = delete;
  NcclJob& operator=(const NcclJob&) = delete;

  const NcclOptions& options() const { return options_; }
  bool in_order() const { return in_order_; }
  /// Throws CommError when a communicator has failed, or the job is being aborted.
  void check();
  /// Aborts all communicators unless that was done before. From any thread.
  void abort(const std::string& reason);

 private:
  friend class NcclGroup;
  using Lock = std::unique_lock<std::mutex>;

  void add(const Lock& lock, NcclGroup& group);
  void watch();
  void look(Lock& lock);
  /// Lets go of the lock while NCCL aborts.
  /// @param by_peer  another rank has failed, or its network has, and so may say more of it.
  void fail(Lock& lock, const std::string& reason, bool by_peer = false) noexcept;
  void end(const std::function<void()>& work) const noexcept;
  void throw_if_failed(const Lock& lock) const;

  NcclOptions options_;
  bool in_order_;
  int device_;
  std::mutex calls_;
  std::condition_variable changed_;
  std::vector<NcclGroup*> groups_;
  std::string failure_;  ///< "" while all is well
  bool by_peer_ = false;
  bool ends_ = false;
  std::thread watcher_;  ///< runs since the first communicator was made
};

/// An NCCL communicator, made at first use.
class NcclGroup {
 public:
  NcclGroup(std::shared_ptr<NcclJob> job, std::string label, int rank, int size);
  /// Work that was issued is done by now; where an exception passes all of the rank's is aborted.
  ~NcclGroup();
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  /// The text of the group's first rank, on all. Collective.
  using Broadcast = std::function<std::string(std::string text)>;
  /// Makes the communicator unless it is there. Collective.
  void open(const Broadcast& broadcast);
  /// Calls `issue` between ncclGroupStart and ncclGroupEnd, and returns when its work stands in its stream.
  void run(const char* what, const std::function<void(ncclComm_t)>& issue);
  /// Of a call of NCCL within `issue`; throws CommError with NCCL's words.
  void check(ncclResult_t status, const char* what) const;

 private:
  friend class NcclJob;

  void finish(std::unique_lock<std::mutex>& lock);
  void settle(const char* what);
  /// What NCCL says of it.
  ncclResult_t state() const;
  std::string words(ncclResult_t status) const;

  std::shared_ptr<NcclJob> job_;
  std::string label_;
  int rank_, size_;
  ncclComm_t comm_ = nullptr;  ///< null before the first use and after an abort
  /// While ranks connect: where NCCL stores the communicator, once more as that ends, well or not, and so
  /// perhaps when the group is no more.
  std::unique_ptr<ncclComm_t> place_;
  int exceptions_;
};

}  // namespace jigsaw::inline nccl
