// What ends a run before its last step, and what does not.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>

#include "base/stop_signal.h"
#include "base/text.h"
#include "end_to_end/saved_runs.h"
#include "end_to_end/slow_disk.h"

namespace jigsaw::e2e {
namespace {

namespace fs = std::filesystem;

using StopTest = SavedRuns;

TEST_F(StopTest, ATimeLimitEndsWithACheckpointAndExitCode75) {
  const Outcome stopped = run(2, arguments("limited") + "--max-minutes 0.001 --set train.steps=100000");
  EXPECT_EQ(stopped.exit_code, 75) << stopped.err;
  EXPECT_TRUE(fs::exists(newest("limited")));
  EXPECT_NE(stopped.out.find(" (--max-minutes 0.001) with a checkpoint"), std::string::npos) << stopped.out;
}

/// While it waits for the start before, which holds the folder, there is nothing to save.
TEST_F(StopTest, ASignalBeforeTheFirstStepEndsWith75AndOneLine) {
  fs::create_directories(folder_ / "early");
  const std::string file = folder_ / "early/lock";
  const int lock = ::open(file.c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(::flock(lock, LOCK_EX), 0);
  ::setenv("SLURM_RESTART_COUNT", "1", 1);
  for (const int number : {SIGTERM, SIGUSR1, SIGINT}) {
    Running running(1, arguments("early"));
    ASSERT_TRUE(running.until(
        [&] { return running.said().find("waiting for the start before") != std::string::npos; }));
    running.signal(number);
    const Outcome stopped = running.collect();
    EXPECT_EQ(stopped.exit_code, 75) << stopped.err;
    EXPECT_NE(stopped.err.find(concat("jigsaw-train: stopped early, before there was anything to save (",
                                      stop_signal_name(number), "); start again\n")),
              std::string::npos)
        << stopped.err;
  }
  ::unsetenv("SLURM_RESTART_COUNT");
  ::close(lock);
}

TEST_F(StopTest, ARunDirectoryThatIsMovedIsNotBegunAnew) {
  config_["checkpoint"] = {{"every", 5}};
  write();
  Running running(2, arguments("moves") + "--set train.steps=1000000");
  ASSERT_TRUE(running.until([&] { return read(folder_ / "moves/metrics.jsonl").size() > 500; }));
  fs::rename(folder_ / "moves", folder_ / "moved");
  expect_one_error(running.collect(), 4, "was moved while the run wrote there; its files are now in ");
  EXPECT_FALSE(fs::exists(folder_ / "moves"));
}

TEST_F(StopTest, ASignalEndsWithACheckpointAndExitCode75) {
  const struct {
    const char* whom;
    int ranks, number;
    std::function<void(const Running&, int)> send;
  } ways[] = {
      {"one rank", 1, SIGTERM, &Running::signal},
      {"one rank", 1, SIGUSR1, &Running::signal},
      {"one rank, whose terminal is gone", 1, SIGHUP, &Running::signal},
      {"all of three, as srun does", 3, SIGTERM, &Running::signal},
      {"one of three", 3, SIGTERM, [](const Running& r, int number) { kill(r.ranks().at(1), number); }},
      {"mpirun, which passes it on", 3, SIGUSR1, &Running::signal_launcher},
  };
  std::signal(SIGHUP, SIG_DFL);  // tests under nohup, which the run would stay under
  for (const auto& [whom, ranks, number, send] : ways) {
    SCOPED_TRACE(whom);
    fs::remove_all(folder_ / "asked");
    Running running(ranks, arguments("asked") + "--set train.steps=100000");
    ASSERT_TRUE(running.until([&] { return read(folder_ / "asked/metrics.jsonl").size() > 500; }));
    ASSERT_EQ(running.ranks().size(), static_cast<std::size_t>(ranks));
    send(running, number);
    const Outcome stopped = running.collect();
    EXPECT_EQ(stopped.exit_code, 75) << stopped.err;
    const std::size_t steps = metrics(folder_ / "asked", "train").size();
    EXPECT_NE(
        stopped.out.find(concat("stopped early at step ", steps, " (", stop_signal_name(number), ") with")),
        std::string::npos)
        << stopped.out;
    EXPECT_NE(newest("asked").find(std::to_string(steps)), std::string::npos) << newest("asked") << steps;
  }
}

/// A training is not lost with the reader of its lines, such as a `tee` that is killed; they stand in its
/// log.
TEST_F(StopTest, AReaderWhoIsGoneIsNoReasonToEnd) {
  folder_.write("ends_first", "#!/bin/sh\nread line\n");
  const std::string code = folder_ / "code";
  const std::string command = concat("{ ", JIGSAW_TRAIN, " ", arguments("alone"), "; echo $? > ",
                                     quoted(code), "; } | sh ", quoted(folder_ / "ends_first"));
  ASSERT_NE(std::system(command.c_str()), -1);
  EXPECT_EQ(read(code), "0\n");
  EXPECT_EQ(metrics(folder_ / "alone", "train").size(), 60U);
}

/// With ever longer limits, until one comes within which all ranks got to run, so that none was missed but
/// the one that was stopped.
TEST_F(StopTest, ARankThatHangsIsNamedByAnotherEvenIfItIsTheFirst) {
  for (int limit = 5;; limit *= 2) {
    SCOPED_TRACE(limit);
    fs::remove_all(folder_ / "hung");
    const std::string seconds = std::to_string(limit);
    Running running(3, arguments("hung") + "--set train.steps=100000 --set watchdog_seconds=" + seconds);
    const bool began = running.until([&] { return read(folder_ / "hung/metrics.jsonl").size() > 500; });
    if (began && running.ranks().size() == 3) kill(running.ranks()[0], SIGSTOP);
    const Outcome ended = running.collect();
    ASSERT_EQ(ended.exit_code, 1) << ended.err;
    ASSERT_GE(ended.errors().size(), 1U) << ended.err;
    const std::string said = ended.errors()[0];
    ASSERT_NE(said.find("no progress for " + seconds + " seconds: "), std::string::npos) << ended.err;
    const bool late = !began || said.find("[rank 1] ") == std::string::npos ||
                      said.find("rank 1 says nothing") != std::string::npos;
    if (late && limit < 500) continue;
    const std::string missed = "[rank 1] no progress for " + seconds + " seconds: rank 0 says nothing; ";
    EXPECT_TRUE(said.find(missed + "rank 1 in step ") != std::string::npos ||
                said.find(missed + "each of ranks 1, 2 in step ") != std::string::npos)
        << ended.err;
    EXPECT_FALSE(fs::exists(folder_ / "hung/watchdog_0.txt")) << "it woke and spoke after all was over";
    return;
  }
}

/// A watchdog that speaks after a day, and a disk on which each MiB of a checkpoint takes so long that its
/// last save, and its verification when the run is started again, take days: on a clock of their own.
TEST_F(StopTest, ASlowDiskIsNoHang) {
  constexpr double kDay = 86400;
  config_["model"]["embed_dim"] = 1024;
  config_["model"]["depth"] = 1;
  config_["optimizer"]["ema_decay"] = 0.0;
  config_["train"] = {{"steps", 2}, {"batch_size", 1}};
  config_["checkpoint"] = {{"every", 2}};
  config_["validation"] = {{"every", 0}};
  config_["watchdog_seconds"] = kDay;
  write();
  const auto days = [&](const std::string& clock) {
    std::ifstream file(folder_ / clock, std::ios::binary);
    std::int64_t numbers[3] = {};
    file.read(reinterpret_cast<char*>(numbers), sizeof numbers);
    return std::pair{static_cast<double>(numbers[1]) * 1e-9 / kDay,
                     static_cast<double>(numbers[2]) * 1e-9 / kDay};
  };
  for (const int ranks : {1, 2}) {
    const std::string name = "slow" + std::to_string(ranks);
    for (const std::string part : {"save", "load"}) {
      SCOPED_TRACE(name + " " + part);
      const std::string clock = name + "_" + part;
      // Eight MiB, the largest unit of work, take seven tenths of the watchdog's time.
      const std::string disk = "0:" + std::to_string(0.7 * kDay / 8) + ":" + (folder_ / clock);
      ASSERT_EQ(setenv("JIGSAW_SLOW_DISK", disk.c_str(), 1), 0);
      Running running(ranks, arguments(name), JIGSAW_TRAIN_CRASHING);
      unsetenv("JIGSAW_SLOW_DISK");
      const Outcome outcome = running.collect();
      ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
      const auto [wrote, read] = days(clock);
      std::printf("%s: wrote for %.1f and read for %.1f of the watchdog's time\n", clock.c_str(), wrote,
                  read);
      EXPECT_GT(part == "save" ? wrote : read, 1.5);
    }
  }
}

/// Whether the signal comes before, in or after the validation of step 20: what is lost is nothing, and the
/// run goes on as if it had not come.
TEST_F(StopTest, ASignalAroundAValidationLosesNothing) {
  const std::string long_validation = "--set train.batch_size=1 --set validation.every=20 ";
  ASSERT_EQ(run(1, arguments("whole") + long_validation).exit_code, 0);
  {
    Running running(1, arguments("asked") + long_validation);
    ASSERT_TRUE(running.until(
        [&] { return read(folder_ / "asked/metrics.jsonl").find("\"step\":20,") != std::string::npos; }));
    running.signal(SIGTERM);
    const Outcome stopped = running.collect();
    // On a machine on which the rest took no time it came too late.
    EXPECT_TRUE(stopped.exit_code == 75 || stopped.exit_code == 0) << stopped.err;
  }
  const Outcome resumed = run(1, arguments("asked") + long_validation);
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(timeless(folder_ / "asked"), timeless(folder_ / "whole"));
}

TEST_F(StopTest, ARunDirectoryThatIsRemovedEndsTheRun) {
  config_["checkpoint"] = {{"every", 0}};
  write();
  Running running(2, arguments("gone") + "--set train.steps=1000000");
  ASSERT_TRUE(running.until([&] { return read(folder_ / "gone/metrics.jsonl").size() > 500; }));
  fs::remove_all(folder_ / "gone");
  expect_one_error(running.collect(), 4, "was removed while the run wrote there");
}

TEST_F(StopTest, ADataFileThatIsChangedOrRemovedEndsTheRun) {
  config_["data"]["files"] = {folder_ / "own/*.nc"};
  config_["data"]["train"] = {"2021-01-02", "2021-01-12"};
  config_["data"]["valid"] = {"2021-02-01", "2021-02-02"};
  config_["model"]["patch"] = {5, 7};
  config_["validation"] = {{"every", 0}};
  config_["checkpoint"] = {{"every", 0}};
  write();
  const fs::path file = folder_ / "own/sample_2021-01.nc";
  const struct {
    int ranks;
    std::function<void()> change;
    const char* says;
  } cases[] = {{2, [&] { fs::last_write_time(file, fs::last_write_time(file) - std::chrono::hours(1)); },
                "was changed while the run was reading it: it was written to"},
               {1, [&] { fs::resize_file(file, fs::file_size(file) / 2); },
                "was changed while the run was reading it"},
               {2, [&] { fs::remove(file); }, "it was there when the run opened it"}};
  int number = 0;
  for (const auto& [ranks, change, says] : cases) {
    ASSERT_EQ(run(1, "sample-data --output " + (folder_ / "own")).exit_code, 0);
    const std::string name = "changed" + std::to_string(++number);
    Running running(ranks, arguments(name) + "--set train.steps=1000000");
    ASSERT_TRUE(running.until([&] { return read(folder_ / (name + "/metrics.jsonl")).size() > 500; }));
    EXPECT_EQ(running.ranks().size(), static_cast<std::size_t>(ranks));
    change();
    expect_one_error(running.collect(), 3, says);
  }
}

}  // namespace
}  // namespace jigsaw::e2e
