// Jobs that hang while the host waits for its device: the watchdog of the lowest rank says which call is not
// done, and who has not arrived there.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "base/error.h"
#include "comm/comm_cases.h"
#include "comm/nccl/ranks_nccl.h"
#include "comm/watchdog.h"
#include "support/fake_cuda/fake_cuda.h"
#include "support/fake_nccl/fake_nccl.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace nccl_hang_test {

constexpr int kRanks = 3;
constexpr std::int64_t kCount = 3000;

void pause() {
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

using State = CallLog::State;

/// Where a rank stays, as its log says it, and the state of its last call.
struct Stand {
  std::string position;
  State state;
};

class NcclHang : public ::testing::Test {
 protected:
  /// Ranks that have added once make `work`. Their watchdogs begin when all stand where they will stay, so
  /// that nothing depends on how fast they came there.
  ///
  /// @return  what rank 0's watchdog said when it ended the job.
  std::string report_of(const std::array<Stand, kRanks>& stands,
                        const std::function<void(Communicator&)>& work) {
    std::string report;
    std::atomic<int> stand = 0;
    try {
      run_nccl_ranks(kRanks, {.poll_seconds = 0.02}, [&](Communicator& comm) {
        add(comm);
        comm.barrier();
        const std::jthread beside([&, log = comm.log()] {
          const Stand& there = stands[static_cast<std::size_t>(comm.rank())];
          const auto is_there = [&] {
            return log->position().text.starts_with(there.position) &&
                   log->last().back().state == there.state;
          };
          const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
          bool arrived = is_there();  // once: a host that goes ahead is between two calls for a moment
          for (; !arrived && std::chrono::steady_clock::now() < end; arrived = is_there()) pause();
          EXPECT_TRUE(arrived) << comm.rank() << " " << log->position().text;
          ++stand;
          while (stand < kRanks) pause();
          const Watchdog watchdog({.seconds = 0.2,
                                   .grace_seconds = 600,
                                   .folder = folder_.path(),
                                   .rank = comm.rank(),
                                   .size = kRanks},
                                  log, [&](const std::string& said) {
                                    report = said;
                                    comm.abort(1);
                                    testing::fake_cuda::stop(-1);
                                    ended_ = true;
                                  });
          while (!ended_) pause();
        });
        work(comm);
        comm.barrier();
      });
    } catch (const CommError&) {
      EXPECT_TRUE(ended_);
      return report;
    }
    ADD_FAILURE() << "the job did not hang";
    return report;
  }
  static void add(Communicator& comm) {
    const Array send = make_array<float>(comm.context(), kCount, [](auto i) { return exact_value(1, i); });
    to_vector<float>(comm, comm.all_reduce(send));
  }
  void stay_away() const {
    while (!ended_) pause();
  }

  testing::TemporaryFolder folder_;
  std::atomic<bool> ended_ = false;
};

TEST_F(NcclHang, ARankThatStopsIsNamed) {
  const std::string waits = "waits in all_reduce #2 on world (3000 elements)";
  const std::string report = report_of({{{waits, State::kRunning},
                                         {"is outside communication, after ", State::kDone},
                                         {waits, State::kRunning}}},
                                       [&](auto& comm) { comm.rank() == 1 ? stay_away() : add(comm); });
  EXPECT_TRUE(report.starts_with("no progress for 0.2 seconds: each of ranks 0, 2 " + waits + "; rank 1 is"))
      << report;
  EXPECT_TRUE(report.ends_with("; not arrived: rank 1")) << report;
}

/// Of a group that nobody has called yet: the ranks wait on the host for all to connect.
TEST_F(NcclHang, ARankThatDoesNotConnectIsNamed) {
  const std::string waits = "waits in all_reduce #0 on tensor";
  const std::string report = report_of(
      {{{waits, State::kWaiting}, {waits, State::kWaiting}, {"is outside communication", State::kDone}}},
      [&](auto& comm) {
        const auto group = comm.split("tensor", [](int rank) { return std::pair(0, rank); });
        comm.rank() == 2 ? stay_away() : add(*group);
      });
  EXPECT_TRUE(report.ends_with("; not arrived: rank 2")) << report;
}

/// Its host has issued the call as all others have, and waits as they do.
TEST_F(NcclHang, AGpuThatHangsIsNamed) {
  const std::string waits = "waits in all_reduce #3 on world (3000 elements)";
  const std::string before =
      "is outside communication: its device has not come to all_reduce #3 on world (3000 elements)";
  const std::string report = report_of(
      {{{before, State::kQueued}, {waits, State::kRunning}, {waits, State::kRunning}}}, [](auto& comm) {
        if (comm.rank() == 0) testing::fake_cuda::stop(0);
        comm.barrier();
        add(comm);
      });
  EXPECT_NE(report.find("rank 0 " + before + "; each of ranks 1, 2 " + waits), std::string::npos) << report;
  EXPECT_TRUE(report.ends_with("; not arrived: rank 0")) << report;
}

/// Hosts are many calls ahead, more than the log keeps: it is the first call that is not done.
TEST_F(NcclHang, TheFirstCallIsNamedOfManyThatStandInStreams) {
  const Stand waits = {"waits in all_reduce #3 ", State::kQueued};
  const Stand hangs = {"is outside communication: its device has not come to all_reduce #3 ", State::kQueued};
  const std::string report = report_of({waits, hangs, waits}, [](auto& comm) {
    if (comm.rank() == 1) testing::fake_cuda::stop(1);
    comm.barrier();
    const Array send = make_array<float>(comm.context(), kCount, [](auto i) { return exact_value(1, i); });
    Array sum;
    for (std::int64_t i = 0; i < CallLog::kKept + 9; ++i) sum = comm.all_reduce(send);
    to_vector<float>(comm, sum);
  });
  EXPECT_TRUE(report.ends_with("; not arrived: rank 1")) << report;
}

/// All ranks are in the call: what hangs lies below it.
TEST_F(NcclHang, ANetworkThatHangsIsNobodysFault) {
  const std::string waits = "waits in all_reduce #3 on world (3000 elements)";
  const std::string report = report_of(
      {{{waits, State::kRunning}, {waits, State::kRunning}, {waits, State::kRunning}}}, [](auto& comm) {
        if (comm.rank() == 0) testing::fake_nccl::stop(1);
        comm.barrier();
        add(comm);
      });
  EXPECT_TRUE(report.ends_with("; all ranks have arrived")) << report;
}

/// What the log says of a call as it passes through the device.
TEST(NcclCallLog, ACallIsOpenUntilTheDeviceHasDoneIt) {
  run_nccl_ranks(2, {.poll_seconds = 0.02}, [](Communicator& comm) {
    const Array send = make_array<float>(comm.context(), kCount, [](auto i) { return exact_value(1, i); });
    const Array sum = comm.all_reduce(send);
    EXPECT_NE(comm.log()->last().back().state, State::kDone);
    EXPECT_FALSE(comm.log()->position().text.starts_with("is outside communication, after"));
    to_vector<float>(comm, sum);
    EXPECT_EQ(comm.log()->last().back().state, State::kDone);
    EXPECT_EQ(comm.log()->position().text,
              "is outside communication, after all_reduce #0 on world (3000 elements)");
  });
}

}  // namespace nccl_hang_test
}  // namespace jigsaw
