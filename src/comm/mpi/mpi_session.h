#pragma once
#include <cstdint>
#include <memory>
#include <optional>

#include "comm/communicator.h"

namespace jigsaw::inline comm {

/// The number of ranks that the launcher of this process promised: the first of OMPI_COMM_WORLD_SIZE,
/// PMI_SIZE, and SLURM_STEP_NUM_TASKS within a job step (SLURM_STEP_ID) that is set.
std::optional<int> launched_ranks();
/// This rank among those on the same machine, as far as the launcher says: known before MPI is.
std::optional<int> launched_rank_on_machine();
/// Whether JIGSAW_CUDA_AWARE_MPI=1 stands in the environment, see MpiSession::cuda_aware(). Open MPI wants
/// such a rank's GPU to be chosen before it is initialised.
bool wants_cuda_aware_mpi();

struct MpiOptions {
  /// Elements in one MPI message, the same on all ranks; larger transfers are sent in several. MPI's counts
  /// are 32-bit, and a message that Open MPI moves between processes of a machine it copies in one call,
  /// which keeps all others from MPI: these are 128 MiB at most.
  std::int64_t largest_count = 1 << 24;
  /// How often transfers are moved on while kernels run, see MpiSession; 0: only by calls of the rank itself.
  double progress_seconds = 2e-4;
};

/// MPI for the life of the process: initialised here, finalised with it. Made once, on the main thread,
/// which then makes all MPI calls (except abort). But MPI moves what does not fit one message of its own only
/// while somebody calls it, and a rank that computes does not. So while transfers are under way a second
/// thread calls it now and then, where MPI allows several threads (one at a time); it moves bytes and does
/// nothing else: sums are formed, and memory is freed, by the rank. Errors of MPI are CommError with MPI's
/// own text. Left by an exception or with a transfer under way, it ends the job with exit code 1 rather than
/// wait for peers that may never come: catch errors inside, and call abort().
///
/// Throws ConfigError when MPI has fewer ranks than the launcher promised, or is wanted to be CUDA-aware and
/// does not say that it is (MPIX_Query_cuda_support, of Open MPI).
class MpiSession {
 public:
  struct State;

  explicit MpiSession(const MpiOptions& options = {});
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  int rank() const;
  int size() const;
  /// This rank among those on the same machine, and how many of them keep to the same cores as this one: of a
  /// socket, as mpirun binds them by itself, or all, where nothing is bound.
  struct OnMachine {
    int rank = 0, ranks = 1, on_cores = 1;
  };
  OnMachine on_machine() const { return on_machine_; }
  /// Whether MPI is handed arrays of GPUs where they stand, of gathers, broadcasts, exchanges and all_to_alls
  /// that are not forwarded: where wants_cuda_aware_mpi().
  bool cuda_aware() const;
  /// Changes MpiOptions::progress_seconds.
  void set_progress(double seconds);
  /// All ranks; valid while the session lives. Collective.
  std::unique_ptr<Communicator> world(Context& context);

 private:
  std::shared_ptr<State> state_;
  OnMachine on_machine_;
};

}  // namespace jigsaw::inline comm
