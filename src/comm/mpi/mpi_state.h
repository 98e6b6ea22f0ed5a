#pragma once
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/mpi/mpi_session.h"
#include "comm/mpi/progress_thread.h"

namespace jigsaw::inline comm {

class MpiTransfer;

/// Throws CommError with MPI's text unless `code` is MPI_SUCCESS.
void check_mpi(int code, const std::string& what);

/// What a session and all its communicators share. It keeps every unfinished transfer, because transfers of
/// several stages need this rank to act, also while it waits for another one: whoever waits drives all.
struct MpiSession::State {
  MpiOptions options;
  int rank = 0, size = 1;  ///< in MPI_COMM_WORLD
  bool finalized = false;
  bool threads_may_call = false;                     ///< whether MPI allows calls from any thread
  bool cuda_aware = false;                           ///< see MpiSession::cuda_aware()
  std::vector<std::shared_ptr<MpiTransfer>> active;  ///< touched by the rank's own thread alone
  /// Of control calls that failed: MPI may use them as long as it lives.
  std::list<std::string> left_texts;
  /// Held by whoever calls MPI.
  MpiMutex mpi;
  std::unique_ptr<ProgressThread> background;  ///< null where MPI allows one thread only

  using Lock = std::unique_lock<MpiMutex>;
  Lock lock() { return Lock(mpi); }
  /// A transfer was started.
  void add(std::shared_ptr<MpiTransfer> transfer);

  /// Lets every transfer progress and drops those that are done.
  void progress();
  /// The host waits until what all of them send is there, or those up to `last`. All comes in one stream, in
  /// the order of calls: what has come is sent while the host waits for the next.
  void wait_for_arrivals(const MpiTransfer* last = nullptr);
  /// Drives all until this one is done.
  void finish(const MpiTransfer& transfer);
};

/// Ends the job. Where MPI does not allow its calls on this thread (a watchdog's) the process ends with the
/// exit code instead, without MPI_Finalize, at which launchers end the others.
void abort_job(MpiSession::State& state, int exit_code);

/// A communicator over `comm`, a duplicate of MPI_COMM_WORLD that it owns.
std::unique_ptr<Communicator> make_mpi_communicator(Context& context,
                                                    std::shared_ptr<MpiSession::State> state, MPI_Comm comm);

}  // namespace jigsaw::inline comm
