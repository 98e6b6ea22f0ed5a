#include "comm/mpi/mpi_session.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "base/error.h"

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
