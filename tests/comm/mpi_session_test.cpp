#include "comm/mpi/mpi_session.h"

#define OMPI_SKIP_MPICXX 1
#include <gtest/gtest.h>
#include <mpi.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/error.h"
#include "comm/mpi/progress_thread.h"

namespace jigsaw {
namespace {

/// What MPI is to say that it allows of threads; nothing: what it does.
std::optional<int> allowed_threads;
/// Exit code of a process that has called MPI_Abort.
constexpr int kAborted = 99;

/// What probes for messages ask, and how many there were.
struct Probes {
  std::atomic<int> count = 0;
  std::atomic<int> rank = -1;
  std::atomic<MPI_Comm> comm = MPI_COMM_NULL;
  std::function<void()> at_each;
};
Probes probes;

}  // namespace
}  // namespace jigsaw

// MPI's own functions stand behind these, as MPI means it for tools that look on.
extern "C" int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int code = PMPI_Init_thread(argc, argv, required, provided);
  *provided = jigsaw::allowed_threads.value_or(*provided);
  return code;
}
extern "C" int MPI_Abort(MPI_Comm, int) {
  std::_Exit(jigsaw::kAborted);
}
extern "C" int MPI_Iprobe(int rank, int, MPI_Comm comm, int* found, MPI_Status*) {
  jigsaw::probes.rank = rank;
  jigsaw::probes.comm = comm;
  ++jigsaw::probes.count;
  if (jigsaw::probes.at_each) jigsaw::probes.at_each();
  *found = 0;
  return MPI_SUCCESS;
}

namespace jigsaw {
namespace {

TEST(LaunchedRanks, ReadsWhatTheLauncherPromised) {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS"}) {
    unsetenv(variable);
  }
  setenv("SLURM_STEP_NUM_TASKS", "5", 1);
  EXPECT_EQ(launched_ranks(), std::nullopt) << "a batch shell is no job step";
  setenv("SLURM_STEP_ID", "0", 1);
  EXPECT_EQ(launched_ranks(), 5);
  setenv("PMI_SIZE", "six", 1);
  EXPECT_EQ(launched_ranks(), 5);
  setenv("PMI_SIZE", "6", 1);
  EXPECT_EQ(launched_ranks(), 6);
  setenv("OMPI_COMM_WORLD_SIZE", "7", 1);
  EXPECT_EQ(launched_ranks(), 7);
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS"}) {
    unsetenv(variable);
  }
}

/// By which ranks choose their GPUs, before MPI is initialised.
TEST(LaunchedRanks, ReadsWhichOfThoseOnTheMachineThisOneIs) {
  const auto variables = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"};
  for (const char* variable : variables) unsetenv(variable);
  EXPECT_EQ(launched_rank_on_machine(), std::nullopt);
  setenv("SLURM_LOCALID", "0", 1);
  EXPECT_EQ(launched_rank_on_machine(), 0);
  setenv("MPI_LOCALRANKID", "-1", 1);
  EXPECT_EQ(launched_rank_on_machine(), 0);
  setenv("MPI_LOCALRANKID", "2", 1);
  EXPECT_EQ(launched_rank_on_machine(), 2);
  setenv("OMPI_COMM_WORLD_LOCAL_RANK", "1 of 4", 1);
  EXPECT_EQ(launched_rank_on_machine(), 2);
  setenv("OMPI_COMM_WORLD_LOCAL_RANK", "3", 1);
  EXPECT_EQ(launched_rank_on_machine(), 3);
  for (const char* variable : variables) unsetenv(variable);
}

/// MPI is initialised once per process: each of these is one of its own.
class MpiThreadsDeathTest : public ::testing::Test {
 protected:
  MpiThreadsDeathTest() { ::testing::GTEST_FLAG(death_test_style) = "threadsafe"; }
};

/// Ends the process by an abort of the job, from the main thread or another one.
void abort_where(int allowed, bool on_main_thread) {
  allowed_threads = allowed;
  MpiSession session;
  Context context = Context::make_host(Backend::kReference, 1);
  const std::unique_ptr<Communicator> world = session.world(context);
  if (on_main_thread) world->abort(75);
  std::thread([&] { world->abort(75); }).join();
}

TEST_F(MpiThreadsDeathTest, AnMpiWithoutThreadsIsRefused) {
  const auto open = [] {
    allowed_threads = MPI_THREAD_SINGLE;
    try {
      const MpiSession session;
    } catch (const ConfigError& error) {
      std::fputs(error.what(), stderr);
      std::_Exit(static_cast<int>(error.code()));
    }
    std::_Exit(0);
  };
  EXPECT_EXIT(open(), ::testing::ExitedWithCode(2), "allows no threads \\(MPI_THREAD_SINGLE\\)");
}

/// A watchdog's thread calls MPI where MPI allows that; elsewhere the process ends by itself, with the code.
TEST_F(MpiThreadsDeathTest, AbortsByMpiOnlyWhereItMayBeCalled) {
  EXPECT_EXIT(abort_where(MPI_THREAD_FUNNELED, false), ::testing::ExitedWithCode(75), "");
  EXPECT_EXIT(abort_where(MPI_THREAD_SERIALIZED, false), ::testing::ExitedWithCode(75), "");
  EXPECT_EXIT(abort_where(MPI_THREAD_MULTIPLE, false), ::testing::ExitedWithCode(kAborted), "");
  EXPECT_EXIT(abort_where(MPI_THREAD_FUNNELED, true), ::testing::ExitedWithCode(kAborted), "");
}

/// How often a thread has probed in all that was woken at least once, at an interval at which it does not
/// wake by itself.
int probed(MpiMutex& mpi, const std::function<void(ProgressThread&)>& at_each) {
  constexpr double kNever = 3600;
  probes.count = 0;
  {
    ProgressThread thread(mpi, 5, kNever);
    probes.at_each = [&] { at_each(thread); };
    thread.set_busy(true);
    while (probes.count == 0) thread.set_interval(kNever);
  }
  return probes.count;
}

/// Of itself, among all ranks: MPICH moves nothing for a probe of MPI_COMM_SELF.
TEST(ProgressThread, ProbesSeveralTimesAmongAllRanks) {
  MpiMutex mpi;
  EXPECT_EQ(probed(mpi, [](ProgressThread&) {}) % ProgressThread::kProbes, 0);
  EXPECT_EQ(probes.rank, 5);
  EXPECT_EQ(probes.comm, MPI_COMM_WORLD);
}

TEST(ProgressThread, EndsWhenNothingIsUnderWay) {
  MpiMutex mpi;
  EXPECT_EQ(probed(mpi, [](ProgressThread& thread) { thread.set_busy(probes.count < 3); }), 3);
}

TEST(ProgressThread, GivesWayToWhoWantsToCallMpi) {
  MpiMutex mpi;
  std::atomic<int> before = 0;
  std::thread other;
  const int all = probed(mpi, [&](ProgressThread& thread) {
    if (other.joinable()) return;
    other = std::thread([&] {
      const std::lock_guard held(mpi);
      before = probes.count.load();
      thread.set_busy(false);
    });
    while (!mpi.wanted()) std::this_thread::yield();
  });
  other.join();
  EXPECT_EQ(before, 1);
  EXPECT_EQ(all, 1);
}

TEST(MpiSession, FewerRanksThanPromisedAreAnError) {
  setenv("PMI_SIZE", "3", 1);
  try {
    const MpiSession session;
    FAIL() << "a promise of 3 ranks was met by " << session.size();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("started 3 ranks, but MPI connects 1"), std::string::npos)
        << error.what();
    EXPECT_NE(std::string(error.what()).find("srun --mpi=pmix"), std::string::npos);
  }
}

}  // namespace
}  // namespace jigsaw
