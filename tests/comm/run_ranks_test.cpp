#include "comm/thread/run_ranks.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "base/error.h"
#include "comm/comm_cases.h"
#include "comm/thread/virtual_clock.h"

namespace jigsaw {
namespace run_ranks_test {

using Clock = std::chrono::steady_clock;

Context make_host_context(int) {
  return Context::make_host(Backend::kReference, 1);
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void pause(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

/// What waits for this limit does not end before the test is ended.
constexpr ThreadOptions kPatient{.time_limit_seconds = 1e6};

Array zeros(const Communicator& comm, std::int64_t count, DType dtype = DType::kFloat32) {
  return Array::zeros(comm.context(), {count}, dtype);
}

/// The message of the CommError that run_ranks ends with.
std::string comm_error(int ranks, const ThreadOptions& options,
                       const std::function<void(Communicator&)>& body) {
  try {
    run_ranks(ranks, options, make_host_context, body);
  } catch (const CommError& error) {
    return error.what();
  }
  return "no error";
}

TEST(RunRanks, TheFirstErrorWinsAndWakesAllOthers) {
  std::atomic<int> woken = 0;
  EXPECT_THROW(run_ranks(4, kPatient, make_host_context,
                         [&](Communicator& comm) {
                           if (comm.rank() == 2) throw DataError("no such file");
                           try {
                             const Array mine = zeros(comm, 10);
                             const Pending pending = comm.start_all_reduce(mine);
                             comm.barrier();
                           } catch (const CommError& error) {
                             EXPECT_NE(std::string(error.what()).find("rank 2 failed: no such file"),
                                       std::string::npos);
                             ++woken;
                             throw;
                           }
                         }),
               DataError);
  EXPECT_EQ(woken, 3);
}

/// Rank 1 is alive, but not in the call that rank 0 leaves behind.
TEST(RunRanks, AnErrorPassesPendingCallsWithoutWaiting) {
  const auto body = [](Communicator& comm) {
    const auto again = comm.split("again", [](int rank) { return std::make_pair(0, rank); });
    if (comm.rank() == 1) return again->barrier();
    const Array mine = zeros(comm, 10);
    const Pending pending = comm.start_all_reduce(mine);
    throw DataError("while a call is under way");
  };
  EXPECT_THROW(run_ranks(2, kPatient, make_host_context, body), DataError);
}

TEST(RunRanks, NamesBothSidesOfAMismatch) {
  const std::string kinds = comm_error(2, {}, [](Communicator& comm) {
    comm.barrier();
    const std::vector<std::int64_t> counts = {4, 4};
    if (comm.rank() == 0) comm.all_gather(zeros(comm, 4), counts);
    if (comm.rank() == 1) comm.reduce_scatter(zeros(comm, 8), counts);
  });
  EXPECT_NE(kinds.find("all_gather #1 of 4 fp32"), std::string::npos) << kinds;
  EXPECT_NE(kinds.find("reduce_scatter #1 of 8 fp32"), std::string::npos) << kinds;
  EXPECT_NE(kinds.find("rank 0 called"), std::string::npos) << kinds;
  EXPECT_NE(kinds.find("rank 1 called"), std::string::npos) << kinds;
  const std::string types = comm_error(2, {}, [](Communicator& comm) {
    comm.all_reduce(zeros(comm, 4, comm.rank() == 0 ? DType::kFloat32 : DType::kFloat64));
  });
  EXPECT_NE(types.find("of 4 fp64"), std::string::npos) << types;
  const std::string counts = comm_error(2, {}, [](Communicator& comm) {
    const std::vector<std::int64_t> send = {1, 1};
    const std::vector<std::int64_t> receive = comm.rank() == 0 ? std::vector<std::int64_t>{1, 5} : send;
    comm.all_to_all(zeros(comm, 2), send, receive);
  });
  EXPECT_NE(counts.find("rank 1 sends 1 elements to rank 0, which expects 5"), std::string::npos) << counts;
  const std::string messages = comm_error(2, {}, [](Communicator& comm) {
    const Message message{1 - comm.rank(), 0, 2 + comm.rank()};
    comm.exchange(zeros(comm, 4), {&message, 1}, {&message, 1}, 4);
  });
  EXPECT_NE(messages.find("sends messages of [2] elements to rank 1, which expects [3]"), std::string::npos)
      << messages;
}

TEST(RunRanks, NoWaitIsEndless) {
  std::atomic<bool> over = false;
  const auto until_over = [&over](const std::function<void()>& call) {
    try {
      call();
    } catch (const CommError&) {
      over = true;
      throw;
    }
  };
  const std::string late = comm_error(2, {.time_limit_seconds = 0.2}, [&](Communicator& comm) {
    if (comm.rank() == 0) until_over([&] { comm.all_reduce(zeros(comm, 4)); });
    while (!over) pause(0.01);
  });
  EXPECT_NE(late.find("waits in all_reduce #0 of 4 fp32 on world for rank 1 since 0.2 seconds"),
            std::string::npos)
      << late;
  const std::string ended = comm_error(2, kPatient, [](Communicator& comm) {
    if (comm.rank() == 0) comm.barrier();
  });
  EXPECT_NE(
      ended.find(
          "rank 0 waits in control all_reduce #0 of 0 values on world for rank 1, and rank 1 has ended"),
      std::string::npos)
      << ended;
}

TEST(RunRanks, AbortEndsAllCalls) {
  const std::string error = comm_error(3, {}, [](Communicator& comm) {
    if (comm.rank() == 1) comm.abort(5);
    comm.barrier();
  });
  EXPECT_NE(error.find("rank 1 aborted the job with exit code 5"), std::string::npos) << error;
}

TEST(RunRanks, MessagesNameRanksOfTheWholeJob) {
  std::atomic<bool> over = false;
  const std::string error = comm_error(4, {.time_limit_seconds = 0.2}, [&](Communicator& comm) {
    const auto pair = comm.split("tensor", [](int rank) { return std::make_pair(rank / 2, rank); });
    while (comm.rank() == 3 && !over) pause(0.01);
    if (comm.rank() != 2) return;
    try {
      pair->barrier();
    } catch (const CommError&) {
      over = true;
      throw;
    }
  });
  EXPECT_NE(error.find("rank 2 waits in control all_reduce #0 of 0 values on tensor for rank 3 since"),
            std::string::npos)
      << error;
}

TEST(RunRanks, EachRankHasItsOwnContext) {
  std::array<const Context*, 3> seen{};
  run_ranks(3, [&](Communicator& comm) { seen[static_cast<std::size_t>(comm.rank())] = &comm.context(); });
  EXPECT_NE(seen[0], seen[1]);
  EXPECT_NE(seen[1], seen[2]);
}

TEST(RunRanks, ResultsBelongToOneRank) {
  run_ranks(3, [](Communicator& comm) {
    const Array send = zeros(comm, 100);
    const Array result = comm.all_reduce(send);
    comm.barrier();
    EXPECT_TRUE(result.unique());
    EXPECT_TRUE(send.unique());
  });
}

/// 2 ranks, 1 MB to each other at 10 MB/s after 20 ms: 120 ms, during which the ranks may compute.
TEST(RunRanks, SimulatedTransfersTakeTheirTime) {
  const ThreadOptions options{.latency_seconds = 0.02, .bytes_per_second = 1e7};
  run_ranks(2, options, make_host_context, [](Communicator& comm) {
    const std::vector<std::int64_t> counts = {250000, 250000};
    const Array send = zeros(comm, 250000);
    auto begin = Clock::now();
    comm.all_gather(send, counts);
    EXPECT_GE(seconds_since(begin), 0.119);
    EXPECT_GE(comm.traffic().seconds, 0.119);
    begin = Clock::now();
    Pending pending = comm.start_all_gather(send, counts);
    const bool there = pending.poll();
    EXPECT_TRUE(!there || seconds_since(begin) >= 0.119);
    while (!pending.poll()) pause(0.01);  // it goes on while the rank computes
    pending.wait();
    EXPECT_GE(seconds_since(begin), 0.119);
  });
}

class VirtualTime : public ::testing::Test {
 protected:
  static constexpr double kClose = 1e-12;

  void run(const std::function<Context(int)>& context, const std::function<void(Communicator&)>& body) {
    run_ranks(2, {.latency_seconds = 0.02, .bytes_per_second = 1e7}, clock_, context, body);
  }
  static void compute(Communicator& comm, double seconds) { comm.context().tally().flops += seconds; }

  VirtualClock clock_{2, {.flops_per_second = 1, .memory_bytes_per_second = 10}};
};

TEST_F(VirtualTime, KernelsAndTransfersGoOnTogether) {
  run(make_host_context, [](Communicator& comm) {
    const std::vector<std::int64_t> counts = {250000, 250000};
    Pending pending = comm.start_all_gather(zeros(comm, 250000), counts);
    EXPECT_FALSE(pending.poll());
    compute(comm, 0.1);
    pending.wait();
    comm.context().tally().bytes += 10;
  });
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_NEAR(clock_.of(rank).now, 1.12, kClose);
    EXPECT_NEAR(clock_.of(rank).computed, 1.1, kClose);
    EXPECT_NEAR(clock_.of(rank).stalled, 0.02, kClose);
    EXPECT_NEAR(clock_.of(rank).calls.at(0).computed, 0.1, kClose);
  }
}

TEST_F(VirtualTime, ALinkServesInOrderAndALateRankHoldsUpThoseWhoWaitForIt) {
  run([](int) { return Context::make_meta(); },
      [](Communicator& comm) {
        const int other = 1 - comm.rank();
        const Array data(comm.context(), {250000}, DType::kFloat32);
        const Message there{other, 0, 250000};
        if (comm.rank() == 1) compute(comm, 1);
        // Rank 0 sends 1 MB and receives nothing, then the other way.
        const std::span<const Message> some(&there, 1), none;
        Pending first =
            comm.start_exchange(data, comm.rank() == 0 ? some : none, comm.rank() == 1 ? some : none, 250000);
        Pending second =
            comm.start_exchange(data, comm.rank() == 1 ? some : none, comm.rank() == 0 ? some : none, 250000);
        second.wait();
        first.wait();
      });
  EXPECT_NEAR(clock_.of(0).calls.at(0).arrived, 0.12, kClose);  // what it sends waits for nobody
  EXPECT_NEAR(clock_.of(0).calls.at(1).arrived, 1.22, kClose);
  EXPECT_NEAR(clock_.of(1).calls.at(0).arrived, 1.12, kClose);
  EXPECT_NEAR(clock_.seconds(), 1.22, kClose);
  EXPECT_NE(clock_.longest_waits(1).find("rank 0: exchange #1"), std::string::npos)
      << clock_.longest_waits(1);
}

/// Whichever thread runs first.
TEST_F(VirtualTime, IsTheSameEachTime) {
  std::vector<double> seconds;
  for (int time = 0; time < 20; ++time) {
    clock_ = {2, {.flops_per_second = 1, .memory_bytes_per_second = 10}};
    run([](int) { return Context::make_meta(); },
        [&](Communicator& comm) {
          const Array data(comm.context(), {1000}, DType::kFloat32);
          if ((time + comm.rank()) % 2 == 0) pause(0.001);
          for (int i = 0; i < 10; ++i) {
            Pending pending = comm.start_all_reduce(data);
            compute(comm, 0.01 * (1 + comm.rank() * i));
            if (!pending.poll()) compute(comm, 0.1);
            pending.wait();
          }
          comm.barrier();
        });
    seconds.push_back(clock_.seconds());
    EXPECT_EQ(seconds.back(), seconds.front());
  }
}

}  // namespace run_ranks_test
}  // namespace jigsaw
