// The batch scripts without SLURM: what sweep.sbatch and train.sbatch start, and what they ask of SLURM then.
#include <gtest/gtest.h>

#include "end_to_end/command.h"

namespace jigsaw::e2e {
namespace {

namespace fs = std::filesystem;

/// Programs in place of SLURM's and of jigsaw-train, which write down what they are asked.
class BatchScripts : public ::testing::Test {
 protected:
  BatchScripts() {
    // Takes its options, as srun does, and runs the rest, which tells how it ends where nothing kills it.
    program("srun",
            R"sh(while [[ $1 == --* ]]; do echo "$1" >> "$STUBS/srun.txt"; shift; done
[[ -z ${NO_RANK-} ]] || exit 0
"$@"
code=$?
((code > 128)) || echo "${TOLD:-$code}" > "$JIGSAW_EXIT_FILE"
exit $code)sh");
    // Of a job whose time is up: SLURM will send nothing that would be waited for.
    program("scontrol", R"sh(echo "$*" >> "$STUBS/scontrol.txt"
[[ $1 != show ]] || echo "JobState=RUNNING Reason=TimeLimit Comment=project-7")sh");
    program("train", R"sh([[ $* != *--size* ]] || { echo 12; exit; }
[[ $* != *--states* ]] || { cat "$STUBS/states" 2> /dev/null; exit; }
[[ $* != *--gave-up* ]] || { echo "${!#} failed 137" >> "$STUBS/states"; exit; }
echo "${!#}" >> "$STUBS/runs.txt"
[[ ${!#} != "$FAILS" ]] || exit "$CODE")sh");
  }

  void program(const std::string& name, const std::string& text) const {
    folder_.write(name, "#!/usr/bin/env bash\n" + text + "\nexit 0\n");
    fs::permissions(folder_.path() / name, fs::perms::owner_all);
  }
  /// The exit code of a script under these settings.
  int run_script(const std::string& script, const std::string& settings,
                 const std::string& command_name = "") const {
    const std::string command =
        "exec env -i PATH=" + quoted(folder_.path().string()) +
        ":\"$PATH\" STUBS=" + quoted(folder_.path().string()) + " JIGSAW_TRAIN=" + quoted(folder_ / "train") +
        " SLURM_JOB_ID=41 SLURM_SUBMIT_DIR=" + quoted(folder_.path().string()) + " JIGSAW_RESTART_DELAY=0 " +
        settings + " bash " + quoted(testing::source_dir() + "/scripts/slurm/" + script) + " " +
        command_name + " --config c.json > " + quoted(folder_ / "log") + " 2>&1";
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  /// sweep.sbatch as one task of an array.
  int run_task(int task, const std::string& array, const std::string& settings = "") const {
    return run_script("sweep.sbatch", "SLURM_ARRAY_JOB_ID=41 SLURM_ARRAY_TASK_ID=" + std::to_string(task) +
                                          " " + array + " FAILS=none " + settings);
  }
  /// What was written down since it was last asked, with blanks for the ends of lines.
  std::string said(const std::string& name) const {
    std::string text = read(folder_ / name);
    fs::remove(folder_ / name);
    for (char& c : text) c = c == '\n' ? ' ' : c;
    return text;
  }
  static std::string array(int least, int most, int count) {
    return "SLURM_ARRAY_TASK_MIN=" + std::to_string(least) + " SLURM_ARRAY_TASK_MAX=" + std::to_string(most) +
           " SLURM_ARRAY_TASK_COUNT=" + std::to_string(count);
  }

  TemporaryFolder folder_;
};

TEST_F(BatchScripts, ATaskTrainsTheRunOfItsNumberUnlessTheArrayIsWhole) {
  struct Case {
    int task;
    std::string array, runs;
  };
  for (const Case& each : std::vector<Case>{{7, array(7, 7, 1), "7 "},         // --array=7
                                            {5, array(0, 7, 3), "5 "},         // 0,5,7
                                            {0, array(0, 7, 3), "0 "},         // 0,5,7
                                            {10, array(0, 10, 6), "10 "},      // 0-11:2
                                            {9, array(6, 11, 6), "9 "},        // 6-11
                                            {11, array(0, 11, 12), "11 "},     // 0-11
                                            {1, array(0, 4, 5), "1 6 11 "},    // 0-4
                                            {4, array(0, 4, 5), "4 9 "},       // 0-4
                                            {13, array(0, 13, 14), ""},        // 0-13
                                            {13, array(13, 13, 1), "13 "}}) {  // which the program refuses
    EXPECT_EQ(run_task(each.task, each.array), 0) << read(folder_ / "log");
    EXPECT_EQ(said("runs.txt"), each.runs) << each.task << " of " << each.array;
    EXPECT_EQ(said("scontrol.txt"), "");
  }
}

TEST_F(BatchScripts, AKilledRankPutsATaskAndAJobBackIntoTheQueueAFewTimes) {
  for (int kills = 1; kills <= 4; ++kills) {
    EXPECT_EQ(run_task(1, array(0, 4, 5), "FAILS=6 CODE=137"), 137);
    EXPECT_EQ(said("runs.txt"), kills < 4 ? "1 6 " : "1 6 11 ");
    EXPECT_EQ(said("scontrol.txt"), kills < 4 ? "show job 41_1 requeue 41_1 " : "");
    EXPECT_EQ(read(folder_ / ".jigsaw-kills-41_1"), kills < 4 ? ",6:" + std::to_string(kills) + "\n" : "");
  }
  EXPECT_NE(read(folder_ / "log").find("is not requeued for 6: a rank was killed in 4 starts"),
            std::string::npos)
      << read(folder_ / "log");
  program("train", "exit \"$CODE\"");
  for (int kills = 1; kills <= 4; ++kills) {
    EXPECT_EQ(run_script("train.sbatch", "CODE=137"), 137);
    EXPECT_EQ(said("scontrol.txt"), kills < 4 ? "show job 41 requeue 41 " : "");
    EXPECT_EQ(fs::exists(folder_ / ".jigsaw-kills-41"), kills < 4);
  }
}

TEST_F(BatchScripts, OnlyWhatCanGoOnIsPutBack) {
  EXPECT_EQ(run_task(1, array(0, 4, 5), "FAILS=1 CODE=75"), 75);
  EXPECT_EQ(said("runs.txt"), "1 ");
  EXPECT_EQ(said("scontrol.txt"), "show job 41_1 requeue 41_1 ");
  // A run that failed by itself: the others are trained.
  EXPECT_EQ(run_task(1, array(0, 4, 5), "FAILS=6 CODE=3"), 3);
  EXPECT_EQ(said("runs.txt"), "1 6 11 ");
  EXPECT_EQ(said("scontrol.txt"), "");
}

/// Runs 1 and 6 are killed each time: each has its own count, and is given up, and the others are trained.
TEST_F(BatchScripts, RunsOfATaskAreGivenUpOneAfterTheOther) {
  const std::string kill_two = R"sh([[ $* != *--size* ]] || { echo 12; exit; }
[[ $* != *--states* ]] || { cat "$STUBS/states" 2> /dev/null; exit; }
[[ $* != *--gave-up* ]] || { echo "${!#} failed 137" >> "$STUBS/states"; exit; }
echo "${!#}" >> "$STUBS/runs.txt"
[[ ${!#} == 11 ]] || exit 137)sh";
  program("train", kill_two);
  std::string runs;
  for (int start = 0; start < 7; ++start) {
    EXPECT_EQ(run_task(1, array(0, 4, 5), "SLURM_RESTART_COUNT=" + std::to_string(start)), 137);
    runs += said("runs.txt") + "| ";
  }
  EXPECT_EQ(runs, "1 | 1 | 1 | 1 6 | 6 | 6 | 6 11 | ");
}

/// SLURM ends with 0, too, where it could start no rank; and with the code of a rank that it ended itself
/// where another one had ended the job.
TEST_F(BatchScripts, WhatTheProgramTellsCounts) {
  program("train", "exit \"$CODE\"");
  EXPECT_EQ(run_script("train.sbatch", "NO_RANK=yes CODE=0"), 137);
  EXPECT_EQ(said("scontrol.txt"), "show job 41 requeue 41 ");
  EXPECT_NE(read(folder_ / "log").find("srun started no rank"), std::string::npos) << read(folder_ / "log");
  EXPECT_EQ(run_script("train.sbatch", "TOLD=2 CODE=75"), 2);
  EXPECT_EQ(said("scontrol.txt"), "");
  EXPECT_FALSE(fs::exists(folder_ / ".jigsaw-exit-41"));
}

/// A forecast that was stopped goes on with --continue, which nobody would add.
TEST_F(BatchScripts, OnlyTrainingsGoOnByThemselves) {
  program("train", "exit \"$CODE\"");
  EXPECT_EQ(run_script("train.sbatch", "CODE=75", "predict"), 75);
  EXPECT_EQ(said("scontrol.txt"), "");
}

TEST_F(BatchScripts, WhereKillsCannotBeCountedThereIsNoRestart) {
  program("train", "exit \"$CODE\"");
  fs::create_directory(folder_ / ".jigsaw-kills-41");
  EXPECT_EQ(run_script("train.sbatch", "CODE=137"), 137);
  EXPECT_EQ(said("scontrol.txt"), "");
  EXPECT_NE(read(folder_ / "log").find("cannot be written to count that"), std::string::npos);
}

/// A signal that came before the program could answer is no kill, however often.
TEST_F(BatchScripts, ASignalBeforeTheFirstLineIsNoKill) {
  program("train", "exit \"$CODE\"");
  for (const char* code : {"138", "143", "129", "130", "138", "143"}) {
    EXPECT_EQ(run_script("train.sbatch", std::string("CODE=") + code), std::atoi(code));
    EXPECT_EQ(said("scontrol.txt"), "show job 41 requeue 41 ") << code;
    EXPECT_FALSE(fs::exists(folder_ / ".jigsaw-kills-41"));
  }
}

/// A kill counts with those before it only where the run did not stop by itself between them.
TEST_F(BatchScripts, AStopForgetsTheKillsBefore) {
  program("train", "exit \"$CODE\"");
  for (const char* code : {"137", "137", "137", "75", "137", "137", "137"}) {
    EXPECT_EQ(run_script("train.sbatch", std::string("CODE=") + code), std::atoi(code));
    EXPECT_NE(said("scontrol.txt").find("requeue 41"), std::string::npos) << code;
  }
  EXPECT_EQ(run_script("train.sbatch", "CODE=137"), 137);
  EXPECT_EQ(said("scontrol.txt").find("requeue 41"), std::string::npos);
}

TEST_F(BatchScripts, KillsAreCountedThroughAChain) {
  program("train", "exit \"$CODE\"");
  const std::string chain = folder_ / "chain", settings = "CODE=137 JIGSAW_CHAIN=" + quoted(chain);
  folder_.write("chain", "75\n");
  for (int job = 1; job <= 4; ++job) {
    EXPECT_EQ(run_script("train.sbatch", settings), 137);
    EXPECT_EQ(read(chain), job < 4 ? "75\n" : "137\n") << job;
  }
  EXPECT_EQ(said("scontrol.txt"), "");
}

/// The last one leaves none of its files.
TEST_F(BatchScripts, AChainEndsWithoutFilesOfItsOwn) {
  program("train", "exit \"$CODE\"");
  const std::string chain = folder_ / "chain", settings = " JIGSAW_CHAIN=" + quoted(chain);
  folder_.write("chain", "75\n");
  EXPECT_EQ(run_script("train.sbatch", "CODE=137" + settings), 137);
  EXPECT_TRUE(fs::exists(chain + ".kills"));
  EXPECT_EQ(run_script("train.sbatch", "CODE=75 JIGSAW_CHAIN_LAST=yes" + settings), 75);
  EXPECT_FALSE(fs::exists(chain));
  EXPECT_FALSE(fs::exists(chain + ".kills"));
}

/// To cancel one job of a chain starts the next.
TEST_F(BatchScripts, AChainSaysHowAllOfItIsCancelled) {
  program("sbatch", R"sh(echo "$*" >> "$STUBS/sbatch.txt"; number=$(grep -c . "$STUBS/sbatch.txt")
((number != ${REFUSED:-0})) || exit 1
echo "$number")sh");
  const std::string folder = quoted(folder_.path().string());
  const std::string command = "script=$(realpath " +
                              quoted(testing::source_dir() + "/scripts/slurm/chain.sh") + ") && cd " +
                              folder + " && exec env PATH=" + folder + ":\"$PATH\" STUBS=" + folder +
                              " bash \"$script\" 3 --nodes=1 -- --config c.json > log 2>&1";
  ASSERT_EQ(std::system(command.c_str()), 0) << read(folder_ / "log");
  const std::string log = read(folder_ / "log");
  EXPECT_NE(log.find("job 3 of 3: 3\n"), std::string::npos) << log;
  EXPECT_NE(log.find("scancel 1 2 3\n"), std::string::npos) << log;
  fs::remove(folder_ / "sbatch.txt");
  const int status = std::system(("export REFUSED=3; " + command).c_str());
  EXPECT_EQ(WEXITSTATUS(status), 2);
  EXPECT_EQ(
      read(folder_ / "log").substr(read(folder_ / "log").find("chain.sh:")),
      "chain.sh: error: sbatch failed for job 3 of 3; submitted are 1 2, which train as far as they come; to "
      "end them: scancel 1 2\n");
}

TEST_F(BatchScripts, RanksAreBound) {
  ASSERT_EQ(run_task(2, array(2, 2, 1), "SLURM_CPUS_PER_TASK=8"), 0);
  EXPECT_EQ(said("srun.txt"),
            "--export=ALL --mpi=pmix --kill-on-bad-exit=1 --cpus-per-task=8 --cpu-bind=cores ");
  // Beside their GPUs, where there are some and nothing else was asked for.
  for (const auto& [given, order] : {std::pair("SLURM_GPUS_ON_NODE=4", "--distribution=block:block "),
                                     std::pair("SLURM_GPUS_ON_NODE=0", ""),
                                     std::pair("SLURM_GPUS_ON_NODE=4 SLURM_DISTRIBUTION=cyclic", "")}) {
    ASSERT_EQ(run_task(2, array(2, 2, 1), given), 0);
    EXPECT_EQ(
        said("srun.txt"),
        std::string("--export=ALL --mpi=pmix --kill-on-bad-exit=1 --cpus-per-task=1 --cpu-bind=cores ") +
            order);
  }
  const std::string settings =
      "JIGSAW_CPU_BIND=verbose,none JIGSAW_DISTRIBUTION=cyclic JIGSAW_GPU_BIND=none JIGSAW_MPI=pmi2";
  const std::string options =
      "--export=ALL --mpi=pmi2 --kill-on-bad-exit=1 --cpus-per-task=1 --cpu-bind=verbose,none "
      "--distribution=cyclic "
      "--gpu-bind=none ";
  ASSERT_EQ(run_task(2, array(2, 2, 1), settings), 0);
  EXPECT_EQ(said("srun.txt"), options);
  ASSERT_EQ(run_script("train.sbatch", settings + " FAILS=none"), 0);
  EXPECT_EQ(said("srun.txt"), options);
}

}  // namespace
}  // namespace jigsaw::e2e
