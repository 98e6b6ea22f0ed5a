#include "comm/watchdog.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <fstream>
#include <future>
#include <sstream>
#include <thread>

#include "base/error.h"
#include "base/text.h"
#include "comm/thread/run_ranks.h"

namespace jigsaw {
namespace watchdog_test {

void pause(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

class WatchdogFolder : public ::testing::Test {
 protected:
  WatchdogFolder()
      : folder_(std::filesystem::temp_directory_path() /
                concat("jigsaw_watchdog_", std::chrono::steady_clock::now().time_since_epoch().count())) {}
  ~WatchdogFolder() override { std::filesystem::remove_all(folder_); }

  WatchdogOptions options(const Communicator& comm) const {
    return {
        .seconds = 0.3, .grace_seconds = 600, .folder = folder_, .rank = comm.rank(), .size = comm.size()};
  }
  std::string text_of(int rank) const {
    std::ostringstream text;
    text << std::ifstream(folder_ / concat("watchdog_", rank, ".txt")).rdbuf();
    return text.str();
  }

  std::filesystem::path folder_;
};

using WatchdogTest = WatchdogFolder;

TEST_F(WatchdogTest, TheLowestRankNamesWhoWaitsWhere) {
  std::array<std::string, 3> reports;
  std::string calls_of_the_last;
  std::atomic<bool> aborted = false;
  try {
    run_ranks(3, [&](Communicator& comm) {
      const Array send = Array::zeros(comm.context(), {6}, DType::kFloat32);
      comm.all_reduce(send);
      Watchdog watchdog(options(comm), comm.log(), [&](const std::string& report) {
        reports[static_cast<std::size_t>(comm.rank())] = report;
        if (comm.rank() == 0) calls_of_the_last = text_of(2);
        comm.abort(1);
        aborted = true;
      });
      watchdog.beat(41 + comm.rank());
      while (comm.rank() == 1 && !aborted) pause(0.01);
      comm.all_reduce(send);
    });
    FAIL() << "the job hung and nobody ended it";
  } catch (const CommError& error) {
    EXPECT_NE(std::string(error.what()).find("rank 0 aborted"), std::string::npos) << error.what();
  }
  EXPECT_EQ(reports[0],
            "no progress for 0.3 seconds: rank 0 in step 41 waits in all_reduce #1 on world (6 elements); "
            "rank 1 in step 42 is outside communication, after all_reduce #0 on world (6 elements); "
            "rank 2 in step 43 waits in all_reduce #1 on world (6 elements); not arrived: rank 1");
  EXPECT_NE(calls_of_the_last.find("0 all_reduce #0 on world (6 elements) done\n"
                                   "1 all_reduce #1 on world (6 elements) waiting\n"),
            std::string::npos)
      << calls_of_the_last;
}

/// Ten beats within twice the limit; with ever longer limits, until one comes in which no beat was late.
TEST_F(WatchdogTest, BeatsKeepItQuiet) {
  for (double limit = 0.3;; limit *= 2) {
    bool spoke = false;
    double longest = 0;
    run_ranks(1, [&](Communicator& comm) {
      WatchdogOptions quiet = options(comm);
      quiet.seconds = limit;
      Watchdog watchdog(quiet, comm.log(), [&](const std::string&) { spoke = true; });
      auto last = std::chrono::steady_clock::now();
      for (int step = 0; step < 10; ++step) {
        watchdog.beat(step);
        pause(limit / 5);
        const auto now = std::chrono::steady_clock::now();
        longest = std::max(longest, std::chrono::duration<double>(now - last).count());
        last = now;
      }
    });
    if (longest > 0.9 * limit) continue;  // this thread did not get to run
    EXPECT_FALSE(spoke);
    EXPECT_EQ(text_of(0), "");
    break;
  }
}

/// Ranks that run ahead of their devices wait in unlike calls; who keeps them waiting is who is in none, or
/// else the one that has come least far.
TEST_F(WatchdogTest, WhoIsInNoCallOrHasComeLeastFarHasNotArrived) {
  const auto log = std::make_shared<CallLog>();
  for (int i = 0; i < 30; ++i) {
    const std::int64_t number = log->begin("world", true, {.kind = Collective::kControl, .sequence = i});
    log->set_state(number, i < 29 ? CallLog::State::kDone : CallLog::State::kWaiting);
  }
  const auto report_with = [&](const std::string& other) {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "watchdog_1.txt") << other;
    std::promise<std::string> report;
    std::string text;
    run_ranks(1, [&](Communicator& comm) {
      WatchdogOptions first = options(comm);
      first.size = 2;
      Watchdog watchdog(first, log, [&](const std::string& spoken) { report.set_value(spoken); });
      text = report.get_future().get();
    });
    EXPECT_TRUE(
        text.starts_with("no progress for 0.3 seconds: rank 0 waits in control #29 on "
                         "world (0 elements); rank 1 is there"))
        << text;
    return text;
  };
  const auto ends = [&](const std::string& other, const std::string& end) {
    EXPECT_TRUE(report_with(other).ends_with(end)) << other;
  };
  ends("rank 1 is there\nin call 28 of the job\n", "; not arrived: rank 1");
  ends("rank 1 is there\nin call 100 of the job\n", "; not arrived: rank 0");
  ends("rank 1 is there\nin no call; the last calls:\n", "; not arrived: rank 1");
  ends("rank 1 is there\nin call 29 of the job\n", "; all ranks have arrived");
}

/// A rank whose process is gone or frozen writes nothing; a higher one then speaks.
TEST_F(WatchdogTest, SpeaksWithoutTheLowerRanks) {
  std::promise<std::string> report;
  std::string text;
  run_ranks(1, [&](Communicator& comm) {
    WatchdogOptions third = options(comm);
    third.rank = 2;
    third.size = 3;
    third.grace_seconds = 0.2;
    Watchdog watchdog(third, comm.log(), [&](const std::string& spoken) { report.set_value(spoken); });
    text = report.get_future().get();
  });
  EXPECT_EQ(text,
            "no progress for 0.3 seconds: each of ranks 0, 1 says nothing; "
            "rank 2 has made no call yet");
  EXPECT_FALSE(std::filesystem::exists(folder_)) << "rank 0 alone makes it";
}

/// Others' files cannot be looked for, nor the own one be written, and the job ends all the same.
TEST_F(WatchdogTest, SpeaksWithoutItsFolder) {
  std::ofstream(folder_) << "no folder";
  std::promise<std::string> report;
  std::string text;
  run_ranks(1, [&](Communicator& comm) {
    WatchdogOptions first = options(comm);
    first.size = 2;
    first.grace_seconds = 0.2;
    Watchdog watchdog(first, comm.log(), [&](const std::string& spoken) { report.set_value(spoken); });
    text = report.get_future().get();
  });
  EXPECT_EQ(text, "no progress for 0.3 seconds: rank 0 has made no call yet; rank 1 says nothing");
}

/// Of thousands the line is short; all that they wrote is in one file, which the next start leaves, though it
/// has fewer ranks, whose files go with those of the others.
TEST_F(WatchdogTest, ManyRanksAreToldTogetherAndKeptInOneFile) {
  constexpr int kRanks = 40;
  std::filesystem::create_directories(folder_);
  std::promise<std::string> report;
  std::string text;
  run_ranks(1, [&](Communicator& comm) {
    WatchdogOptions first = options(comm);
    first.size = kRanks;
    Watchdog watchdog(first, comm.log(), [&](const std::string& spoken) { report.set_value(spoken); });
    for (int rank = 1; rank < kRanks; ++rank) {
      std::ofstream(folder_ / concat("watchdog_", rank, ".txt"))
          << "rank " << rank << (rank < 20 ? " waits" : concat(" is at ", rank))
          << "\nin call 7 of the job\n";
    }
    text = report.get_future().get();
  });
  EXPECT_TRUE(
      text.starts_with("no progress for 0.3 seconds: rank 0 has made no call yet; each of "
                       "ranks 1 to 19 waits; rank 20 is at 20; rank 21 is at 21; "))
      << text;
  EXPECT_TRUE(text.ends_with("; rank 33 is at 33; 6 other ranks elsewhere; not arrived: rank 0")) << text;
  const auto files = [&] {
    std::vector<std::filesystem::path> kept;
    int of_ranks = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      if (entry.path().string().ends_with("Z.txt")) {
        kept.push_back(entry.path());
      } else {
        ++of_ranks;
      }
    }
    return std::pair(kept, of_ranks);
  };
  EXPECT_EQ(files().second, kRanks);
  run_ranks(2, [&](Communicator& comm) {
    const Watchdog next(options(comm), comm.log(), [](const std::string&) {});
    comm.barrier();
  });
  const auto [kept, of_ranks] = files();
  EXPECT_EQ(of_ranks, 0);
  ASSERT_EQ(kept.size(), 1U);
  std::ostringstream whole;
  whole << std::ifstream(kept.front()).rdbuf();
  EXPECT_TRUE(whole.str().starts_with(text + "\n\nrank 0 has made no call yet\n")) << whole.str();
  EXPECT_TRUE(whole.str().ends_with("\nrank 39 is at 39\nin call 7 of the job\n")) << whole.str();
}

/// A rank alone needs no folder, and leaves files of others in the working folder alone.
TEST_F(WatchdogTest, ARankAloneSpeaksWithoutFiles) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::create_directories(folder_);
  std::filesystem::current_path(folder_);
  std::ofstream("watchdog_0.txt") << "precious";
  std::ofstream("watchdog_alive") << "of another job";
  std::promise<std::string> report;
  run_ranks(1, [&](Communicator& comm) {
    WatchdogOptions alone = options(comm);
    alone.folder.clear();
    const Watchdog watchdog(alone, comm.log(), [&](const std::string& spoken) { report.set_value(spoken); });
    EXPECT_EQ(report.get_future().get(), "no progress for 0.3 seconds: rank 0 has made no call yet");
  });
  std::filesystem::current_path(before);
  EXPECT_EQ(text_of(0), "precious");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 2);
}

/// Pipes whose other end nobody opens, and links to files of others.
TEST_F(WatchdogTest, WhatHasTheNamesOfItsFilesIsNeitherWaitedForNorFollowed) {
  const std::filesystem::path beside = folder_ / "watchdog_0.txt.part", precious = folder_ / "precious";
  for (const bool pipe : {true, false}) {
    std::filesystem::create_directories(folder_);
    std::ofstream(precious) << "kept";
    if (pipe) {
      ASSERT_EQ(::mkfifo(beside.c_str(), 0600), 0);
    } else {
      std::filesystem::create_symlink(precious, beside);
    }
    std::promise<std::string> report;
    run_ranks(1, [&](Communicator& comm) {
      Watchdog watchdog(options(comm), comm.log(),
                        [&](const std::string& spoken) { report.set_value(spoken); });
      EXPECT_EQ(report.get_future().get(), "no progress for 0.3 seconds: rank 0 has made no call yet");
    });
    EXPECT_EQ(text_of(0), "rank 0 has made no call yet\nin no call; the last calls:\n");
    std::ifstream in(precious);
    std::string kept;
    in >> kept;
    EXPECT_EQ(kept, "kept");
  }
}

/// A rank that comes to its next unit while others are still to answer is no reason to end the job.
TEST_F(WatchdogTest, HeedsProgressWhileItAwaitsTheOthers) {
  run_ranks(1, [&](Communicator& comm) {
    WatchdogOptions first = options(comm);
    first.size = 2;  // the other never answers
    std::atomic<bool> spoke = false;
    Watchdog watchdog(first, comm.log(), [&](const std::string&) { spoke = true; });
    const std::filesystem::path status = folder_ / "watchdog_0.txt";
    while (!std::filesystem::exists(status)) pause(0.01);
    do {
      watchdog.beat(1);
      pause(0.01);
    } while (std::filesystem::exists(status));
    EXPECT_FALSE(spoke);
  });
}

/// Rank 1 waits for rank 0, which is slow and makes progress all the time; with ever longer limits, until one
/// comes in which none of its units was late.
TEST_F(WatchdogTest, ARankThatWaitsForASlowOneIsQuiet) {
  for (double limit = 0.3;; limit *= 2) {
    std::atomic<bool> spoke = false;
    double longest = 0;
    run_ranks(2, [&](Communicator& comm) {
      WatchdogOptions quiet = options(comm);
      quiet.seconds = limit;
      Watchdog watchdog(quiet, comm.log(), [&](const std::string&) { spoke = true; });
      comm.barrier();
      auto last = std::chrono::steady_clock::now();
      for (int unit = 0; comm.rank() == 0 && unit < 20; ++unit) {
        watchdog.beat(unit);
        pause(limit / 10);
        const auto now = std::chrono::steady_clock::now();
        longest = std::max(longest, std::chrono::duration<double>(now - last).count());
        last = now;
      }
      comm.barrier();
    });
    if (longest > 0.5 * limit) continue;  // this thread did not get to run
    EXPECT_FALSE(spoke);
    break;
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "watchdog_alive"));
}

}  // namespace watchdog_test
}  // namespace jigsaw
