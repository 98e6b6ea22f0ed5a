#include "comm/mpi/mpi_session.h"

#include <dlfcn.h>
#include <link.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <list>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "comm/mpi/mpi_state.h"
#include "comm/mpi/mpi_transfer.h"
#include "comm/mpi/own_folder.h"

#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>  // Open MPI's, which wants mpi.h before it
#endif

namespace jigsaw::inline comm {

namespace {

/// MPI_Finalize() unloads MPI's plugins, and libraries that they alone need. A thread that one of these has
/// started and does not wait for then runs in memory that is gone: so they stay.
void finalize() {
  std::vector<std::string> libraries;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* paths) {
        if (info->dlpi_name != nullptr && *info->dlpi_name != '\0')
          static_cast<std::vector<std::string>*>(paths)->emplace_back(info->dlpi_name);
        return 0;
      },
      &libraries);
  for (const std::string& path : libraries) ::dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  MPI_Finalize();
}

std::optional<int> environment_number(const char* variable, int least = 1) {
  const char* text = std::getenv(variable);
  int value = 0;
  if (text == nullptr) return std::nullopt;
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), value);
  if (error != std::errc() || *end != '\0' || value < least) return std::nullopt;
  return value;
}

/// Ranks on this machine, as far as the launcher says: a rank that spins for its peers must then give way.
bool ranks_exceed_cores() {
  int ranks = 1;
  if (const auto local = environment_number("OMPI_COMM_WORLD_LOCAL_SIZE")) {
    ranks = *local;
  } else if (const auto all = environment_number("SLURM_STEP_NUM_TASKS")) {
    const int nodes = environment_number("SLURM_STEP_NUM_NODES").value_or(1);
    ranks = (*all + nodes - 1) / nodes;
  }
  return ranks > sysconf(_SC_NPROCESSORS_ONLN);
}

/// Open MPI before 4.1.7, and 5.0.0 to 5.0.3, tells UCX of MPI_THREAD_SERIALIZED as of one thread (Open MPI's
/// issues 12577 and 12613). Its transports over InfiniBand then ring doorbells in a way that on Arm two
/// threads may not, even one after the other.
void let_threads_share_doorbells() {
#if defined(__aarch64__)
  std::error_code unreadable;
  if (!std::filesystem::exists("/sys/class/infiniband", unreadable)) return;
  for (const char* variable : {"UCX_RC_MLX5_MMIO_MODE", "UCX_DC_MLX5_MMIO_MODE", "UCX_UD_MLX5_MMIO_MODE"})
    setenv(variable, "bf_post_mt", 0);
#endif
}

#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5

bool has_launcher() {
  for (const char* variable : {"PMIX_NAMESPACE", "PMI_RANK", "PMI_FD"}) {
    if (std::getenv(variable) != nullptr) return true;
  }
  return launched_ranks().has_value();
}

/// A variable of the environment that is another while this lives.
class OtherVariable {
 public:
  OtherVariable(const char* name, const std::string& value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  ~OtherVariable() {
    if (before_) setenv(name_, before_->c_str(), 1);
    if (!before_) unsetenv(name_);
  }
  OtherVariable(const OtherVariable&) = delete;
  OtherVariable& operator=(const OtherVariable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

/// What Open MPI till 4 is told, while it is initialised, of a process that no launcher started: that it
/// sends to itself alone, has a folder to itself, and needs no daemon. Else it loads the libraries of every
/// network; that of Omni-Path measures clocks for 0.2 s before it sees that there is none.
class AloneInOpenMpi {
 public:
  AloneInOpenMpi() {
    if (has_launcher()) return;
    tell("OMPI_MCA_pml", "ob1");
    tell("OMPI_MCA_btl", "self");
    own_.emplace();
    if (own_->path().empty()) return;
    told_.emplace_back(own_->variable(), own_->path());
    tell("OMPI_MCA_ess_singleton_isolated", "1");
  }

 private:
  /// A variable that the user has not set.
  void tell(const char* name, const char* value) {
    if (std::getenv(name) == nullptr) told_.emplace_back(name, value);
  }

  std::optional<OwnMpiFolder> own_;
  std::list<OtherVariable> told_;
};

#else

class AloneInOpenMpi {};

#endif

/// What MPI allows of threads.
int initialize() {
  int initialized = 0;
  check_mpi(MPI_Initialized(&initialized), "MPI_Initialized");
  if (initialized != 0) throw CommError("MPI is initialised once per process: keep one MpiSession");
  if (ranks_exceed_cores()) setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
  let_threads_share_doorbells();
  int provided = 0;
  [[maybe_unused]] const AloneInOpenMpi alone;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
  check_mpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  return provided;
}

bool says_it_is_cuda_aware() {
#if defined(OMPI_HAVE_MPI_EXT_CUDA) && OMPI_HAVE_MPI_EXT_CUDA
  return MPIX_Query_cuda_support() == 1;
#else
  return false;  // of others nothing is known
#endif
}

MpiSession::OnMachine find_on_machine() {
  MpiSession::OnMachine found;
  MPI_Comm comm = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm),
            "MPI_Comm_split_type");
  check_mpi(MPI_Comm_rank(comm, &found.rank), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(comm, &found.ranks), "MPI_Comm_size");
  cpu_set_t mine;
  CPU_ZERO(&mine);
  sched_getaffinity(0, sizeof(mine), &mine);  // where there are more cores than these hold all have none
  std::vector<cpu_set_t> all(static_cast<std::size_t>(found.ranks));
  check_mpi(MPI_Allgather(&mine, sizeof(mine), MPI_BYTE, all.data(), sizeof(mine), MPI_BYTE, comm),
            "MPI_Allgather");
  found.on_cores = static_cast<int>(
      std::ranges::count_if(all, [&](const cpu_set_t& cores) { return CPU_EQUAL(&cores, &mine) != 0; }));
  check_mpi(MPI_Comm_free(&comm), "MPI_Comm_free");
  return found;
}

}  // namespace

void check_mpi(int code, const std::string& what) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw CommError(concat(what, " failed: ", std::string(text.data(), static_cast<std::size_t>(length))));
}

void MpiSession::State::add(std::shared_ptr<MpiTransfer> transfer) {
  active.push_back(std::move(transfer));
  if (background) background->set_busy(true);
}

void MpiSession::State::progress() {
  if (active.empty()) return;
  // A stage may throw; what is done by then is dropped the next time.
  for (const auto& transfer : active) transfer->step();
  std::erase_if(active, [](const auto& transfer) { return transfer->done(); });
  if (!background || !active.empty()) return;
  const Lock held = lock();  // then the thread beside does not call MPI any more
  background->set_busy(false);
}

void MpiSession::State::wait_for_arrivals(const MpiTransfer* last) {
  for (const auto& transfer : std::vector(active)) {
    if (!transfer->arrived()) {
      transfer->wait_for_arrival();
      progress();
    }
    if (transfer.get() == last) return;
  }
}

void MpiSession::State::finish(const MpiTransfer& transfer) {
  if (!transfer.done()) wait_for_arrivals(&transfer);
  while (!transfer.done()) progress();
}

void abort_job(MpiSession::State& state, int exit_code) {
  std::fflush(nullptr);
  int is_main = 0;
  if (state.threads_may_call || (MPI_Is_thread_main(&is_main) == MPI_SUCCESS && is_main != 0)) {
    const auto lock = state.threads_may_call ? MpiSession::State::Lock() : state.lock();
    MPI_Abort(MPI_COMM_WORLD, exit_code);
  }
  std::_Exit(exit_code);
}

bool wants_cuda_aware_mpi() {
  const char* const given = std::getenv("JIGSAW_CUDA_AWARE_MPI");
  return given != nullptr && std::string_view(given) == "1";
}

std::optional<int> launched_rank_on_machine() {
  for (const char* variable : {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"}) {
    if (const auto rank = environment_number(variable, 0)) return rank;
  }
  return std::nullopt;
}

std::optional<int> launched_ranks() {
  if (const auto ranks = environment_number("OMPI_COMM_WORLD_SIZE")) return ranks;
  if (const auto ranks = environment_number("PMI_SIZE")) return ranks;
  if (std::getenv("SLURM_STEP_ID") != nullptr) return environment_number("SLURM_STEP_NUM_TASKS");
  return std::nullopt;
}

MpiSession::MpiSession(const MpiOptions& options) : state_(std::make_shared<State>()) {
  state_->options = options;
  const std::optional<int> promised = launched_ranks();  // MPI_Init may set what it reads
  const int provided = initialize();
  if (provided < MPI_THREAD_FUNNELED) {
    finalize();
    throw ConfigError(
        "this MPI allows no threads (MPI_THREAD_SINGLE), and each rank has some; use one that provides "
        "MPI_THREAD_FUNNELED");
  }
  state_->threads_may_call = provided == MPI_THREAD_MULTIPLE;
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &state_->rank), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &state_->size), "MPI_Comm_size");
  const int delivered = state_->size;
  if (promised && *promised > delivered) {
    finalize();
    throw ConfigError(
        concat("the launcher started ", *promised, " ranks, but MPI connects ", delivered,
               ": use the mpirun of the MPI library this program was built with, or `srun --mpi=pmix`"));
  }
  state_->cuda_aware = wants_cuda_aware_mpi();
  int wishes[] = {state_->cuda_aware ? 1 : 0, state_->cuda_aware ? 0 : 1};
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, wishes, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD), "MPI_Allreduce");
  if (wishes[0] == 1 && wishes[1] == 1) {
    finalize();
    throw ConfigError(
        "JIGSAW_CUDA_AWARE_MPI is 1 in the environment of some ranks alone: give it to all (mpirun -x "
        "JIGSAW_CUDA_AWARE_MPI)");
  }
  if (state_->cuda_aware && !says_it_is_cuda_aware()) {
    finalize();
    throw ConfigError("JIGSAW_CUDA_AWARE_MPI is 1, and this MPI does not say that it is CUDA-aware");
  }
  on_machine_ = find_on_machine();
  if (provided >= MPI_THREAD_SERIALIZED && delivered > 1)
    state_->background =
        std::make_unique<ProgressThread>(state_->mpi, state_->rank, options.progress_seconds);
}

void MpiSession::set_progress(double seconds) {
  if (state_->background) state_->background->set_interval(seconds);
}

MpiSession::~MpiSession() {
  state_->background.reset();
  if (std::uncaught_exceptions() > 0 || !state_->active.empty()) {
    MPI_Abort(MPI_COMM_WORLD, static_cast<int>(ExitCode::kInternal));
  }
  state_->finalized = true;
  finalize();
}

bool MpiSession::cuda_aware() const {
  return state_->cuda_aware;
}

int MpiSession::rank() const {
  return state_->rank;
}

int MpiSession::size() const {
  return state_->size;
}

std::unique_ptr<Communicator> MpiSession::world(Context& context) {
  MPI_Comm comm = MPI_COMM_NULL;
  {
    const State::Lock lock = state_->lock();
    check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "MPI_Comm_dup");
  }
  return make_mpi_communicator(context, state_, comm);
}

}  // namespace jigsaw::inline comm
