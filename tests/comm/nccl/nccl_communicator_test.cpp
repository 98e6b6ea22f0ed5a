#include "nccl/nccl_communicator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>
#include <thread>

#include "array/current_work.h"
#include "array/device_times.h"
#include "base/error.h"
#include "base/text.h"
#include "base/trace.h"
#include "comm/comm_cases.h"
#include "comm/nccl/ranks_nccl.h"
#include "comm/thread/run_ranks.h"
#include "support/fake_cuda/fake_cuda.h"
#include "support/fake_nccl/fake_nccl.h"

namespace jigsaw {
namespace nccl_communicator_test {

using testing::fake_nccl::take_mistakes;
using testing::fake_nccl::take_work;

constexpr NcclOptions kTest{.poll_seconds = 0.02};

std::vector<std::int64_t> even_pieces(const Communicator& comm, std::int64_t count) {
  return std::vector<std::int64_t>(static_cast<std::size_t>(comm.size()), count);
}
Array rough_array(const Communicator& comm, std::int64_t count) {
  return make_array<float>(comm.context(), count, [&](auto i) { return rough_value(comm.rank(), i); });
}

/// Every kind of call on one rank, through NCCL: what a machine with one GPU can show.
TEST(NcclCommunicator, ServesAGroupOfOne) {
  run_nccl_ranks(1, {.groups_of_one = true}, [](Communicator& comm) {
    const Array send = rough_array(comm, 3000);
    const auto sent = to_vector<float>(comm, send);
    const std::vector<std::int64_t> counts = {3000};
    const Message whole{0, 0, 3000};
    EXPECT_EQ(to_vector<float>(comm, comm.all_gather(send, counts)), sent);
    EXPECT_EQ(to_vector<float>(comm, comm.reduce_scatter(send, counts)), sent);
    EXPECT_EQ(to_vector<float>(comm, comm.all_reduce(send)), sent);
    EXPECT_EQ(to_vector<float>(comm, comm.all_reduce(send.slice(0, {5}))),
              std::vector<float>(sent.begin(), sent.begin() + 5));
    EXPECT_EQ(to_vector<float>(comm, comm.all_to_all(send, counts, counts)), sent);
    EXPECT_EQ(to_vector<float>(comm, comm.broadcast(send, 0)), sent);
    EXPECT_EQ(to_vector<float>(comm, comm.exchange(send, {&whole, 1}, {&whole, 1}, 3000)), sent);
    const auto work = take_work();
    EXPECT_EQ(work.collectives, 4);  // two gathers of sums, one of pieces, a broadcast
    EXPECT_EQ(work.messages, 2);
  });
  EXPECT_EQ(take_mistakes(), std::vector<std::string>());
}

TEST(NcclCommunicator, LeavesAGroupOfOneAlone) {
  run_nccl_ranks(1, kTest, [](Communicator& comm) {
    const Array send = rough_array(comm, 7);
    EXPECT_EQ(comm.all_reduce(send).identity(), send.identity());
    EXPECT_EQ(take_work().launches, 0);
  });
}

/// Of even pieces NCCL's own gather, of others one message to each.
TEST(NcclCommunicator, GathersEvenPiecesByNccl) {
  constexpr int kRanks = 3;
  run_nccl_ranks(kRanks, kTest, [](Communicator& comm) {
    comm.all_gather(rough_array(comm, 4), even_pieces(comm, 4));
    comm.barrier();
    to_vector<float>(comm, comm.all_gather(rough_array(comm, 4), even_pieces(comm, 4)));
  });
  EXPECT_EQ(take_work().messages, 0);
  run_nccl_ranks(kRanks, kTest, [](Communicator& comm) {
    const std::vector<std::int64_t> counts = {4, 0, 2};
    const auto own = counts[static_cast<std::size_t>(comm.rank())];
    to_vector<float>(comm, comm.all_gather(rough_array(comm, own), counts));
  });
  const auto work = take_work();
  EXPECT_EQ(work.messages, 2 + 2);  // the second rank has none
  EXPECT_EQ(work.collectives, 0);
}

/// "fast" adds as NCCL does: not in the order of ranks, in no kernel of ours.
TEST(NcclCommunicator, FastReductionsAreNccls) {
  constexpr int kRanks = 4;
  run_nccl_ranks(kRanks, {.fast_reduction = true, .poll_seconds = 0.02}, [](Communicator& comm) {
    const Array send = rough_array(comm, 2000);
    const auto whole = to_vector<float>(comm, comm.all_reduce(send));
    const auto piece = to_vector<float>(comm, comm.reduce_scatter(send, even_pieces(comm, 500)));
    const auto ordered = reference_sum<float>(kRanks, 2000);
    EXPECT_FALSE(same_bits(whole, ordered));
    for (std::size_t i = 0; i < whole.size(); ++i) {
      double sum = 0, size = 0;
      for (const float x : rough_values<float>(kRanks, static_cast<std::int64_t>(i))) {
        sum += static_cast<double>(x);
        size += std::abs(static_cast<double>(x));
      }
      EXPECT_NEAR(whole[i], sum, 1e-6 * size);
      const std::size_t first = static_cast<std::size_t>(comm.rank()) * 500;
      if (i >= first && i < first + 500) {
        EXPECT_NEAR(piece[i - first], sum, 1e-6 * size);
      }
    }
    // A NaN wins over a maximum, of which NCCL knows nothing; beside it a maximum is no sum.
    const auto own = [&](std::int64_t i) {
      const auto rank = static_cast<float>(comm.rank());
      return i == 0 && comm.rank() == 1 ? NAN : rank;
    };
    const auto highest =
        to_vector<float>(comm, comm.all_reduce(make_array<float>(comm.context(), 2, own), ReduceOp::kMax));
    EXPECT_TRUE(std::isnan(highest[0]));
    EXPECT_EQ(highest[1], kRanks - 1);
  });
  EXPECT_EQ(take_work().messages, 0);
  EXPECT_EQ(take_mistakes(), std::vector<std::string>());
}

/// Bytes that go out, by closed form, over uneven pieces.
TEST(NcclCommunicator, CountsWhatItSends) {
  constexpr int kRanks = 5;
  run_nccl_ranks(kRanks, kTest, [](Communicator& comm) {
    const auto counts = uneven_counts(kRanks, 2);
    const auto whole = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
    const auto own = counts[static_cast<std::size_t>(comm.rank())];
    comm.all_gather(rough_array(comm, own), counts);
    comm.reduce_scatter(rough_array(comm, whole), counts);
    comm.broadcast(rough_array(comm, 6), 2);
    const auto ones = even_pieces(comm, 1);
    comm.all_to_all(rough_array(comm, kRanks), ones, ones);
    for (const Collective kind : {Collective::kAllGather, Collective::kReduceScatter, Collective::kBroadcast,
                                  Collective::kAllToAll}) {
      const auto k = static_cast<std::size_t>(kind);
      EXPECT_EQ(comm.traffic().sent[k].bytes, comm.traffic().sent_bytes[k]) << name(kind);
    }
    EXPECT_EQ(comm.traffic().sent_bytes[0], 4.0 * (kRanks - 1) * static_cast<double>(own));
  });
}

/// Work that comes later in the context's stream may use what was let go, before anybody waits on the host.
TEST(NcclCommunicator, MemoryIsLetGoInTheOrderOfStreams) {
  run_nccl_ranks(2, kTest, [](Communicator& comm) {
    std::vector<Array> sums;
    for (int step = 0; step < 10; ++step) {
      Array send = rough_array(comm, 3000);
      sums.push_back(comm.all_reduce(send));
      EXPECT_TRUE(send.unique());
    }
    for (const Array& sum : sums)
      EXPECT_TRUE(same_bits(to_vector<float>(comm, sum), reference_sum<float>(2, 3000)));
  });
  EXPECT_EQ(take_mistakes(), std::vector<std::string>());
}

/// Two streams: who waits for an urgent call does not wait for one in the background that was made before.
/// Sums of both have the bits of all others.
TEST(NcclCommunicator, AnUrgentCallGoesPastOneInTheBackground) {
  run_nccl_ranks(3, kTest, [](Communicator& comm) {
    using State = CallLog::State;
    const Array send = rough_array(comm, 3000);
    for (int step = 0; step < 3; ++step) {
      Pending background =
          comm.start_all_reduce(send, ReduceOp::kSum, Purpose::kGradients, Urgency::kBackground);
      const std::int64_t number = comm.log()->last().back().number;
      const Array urgent = comm.all_reduce(send);
      EXPECT_TRUE(same_bits(to_vector<float>(comm, urgent), reference_sum<float>(3, 3000)));
      const auto calls = comm.log()->last();
      const auto in_background = std::ranges::find(calls, number, &CallLog::Entry::number);
      EXPECT_EQ(in_background->state, State::kRunning) << "NCCL launches in the order of calls";
      EXPECT_EQ(std::next(in_background)->state, State::kDone);
      EXPECT_TRUE(same_bits(to_vector<float>(comm, background.wait()), reference_sum<float>(3, 3000)));
    }
  });
  EXPECT_EQ(take_mistakes(), std::vector<std::string>());
}

/// The time in which the device stands still, which the host does not wait for in a call.
TEST(NcclCommunicator, MeasuresHowLongTheDeviceWaits) {
  constexpr double kLate = 0.05;
  std::atomic<const CallLog*> log = nullptr;
  run_nccl_ranks(2, kTest, [&](Communicator& comm) {
    to_vector<float>(comm, comm.all_reduce(rough_array(comm, 3000)));
    const Traffic before = comm.traffic();
    if (comm.rank() == 0) log = comm.log().get();
    const auto waits = [&] {
      return log != nullptr && log.load()->last().back().state == CallLog::State::kRunning;
    };
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (comm.rank() == 1 && !waits() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    EXPECT_TRUE(comm.rank() == 0 || waits());
    if (comm.rank() == 1) std::this_thread::sleep_for(std::chrono::duration<double>(kLate));
    const auto begin = std::chrono::steady_clock::now();
    const Array sum = comm.all_reduce(rough_array(comm, 3000));
    EXPECT_EQ(comm.traffic().seconds, before.seconds) << "the host knows of nothing yet";
    to_vector<float>(comm, sum);
    const std::chrono::duration<double> all = std::chrono::steady_clock::now() - begin;
    const Traffic after = comm.traffic();
    EXPECT_GE(after.wait_seconds - before.wait_seconds, comm.rank() == 0 ? kLate : 0);
    EXPECT_LE(after.wait_seconds - before.wait_seconds, all.count() + 1e-6);
    EXPECT_EQ(after.seconds - before.seconds, after.wait_seconds - before.wait_seconds);
    comm.barrier();
  });
}

/// A collective of a traced rank, as its device carried it and stood still for it.
TEST(NcclCommunicator, ATraceHasTheTimesOfTheDevice) {
  constexpr std::int64_t kRounding = 1000;  // nanoseconds, of milliseconds in float
  run_nccl_ranks(2, kTest, [](Communicator& comm) {
    const Array send = rough_array(comm, 3000);
    to_vector<float>(comm, comm.all_reduce(send));
    const auto trace = std::make_shared<EventTrace>();
    const TracesFor traced(trace, "main");
    trace->record(true);
    const CurrentStep step(comm.context(), 7);
    const std::int64_t begin = trace_now();
    const Array sum = comm.all_reduce(send);
    const Array all = comm.all_gather(send, even_pieces(comm, 3000));
    to_vector<float>(comm, all);
    trace->record(false);
    comm.context().state<DeviceTimes>().hand_over(comm.context(), *trace);
    std::map<std::string, std::vector<TraceEvent>> lanes;
    for (auto& [name, events] : trace->events()) lanes[name] = events;
    const std::vector<TraceEvent>&carried = lanes[kDeviceTransferLane], &waited = lanes[kDeviceLane];
    ASSERT_EQ(carried.size(), 2U);
    ASSERT_EQ(waited.size(), 2U);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(carried[i].kind, TraceKind::kCarried);
      EXPECT_EQ(waited[i].kind, TraceKind::kWait);
      EXPECT_EQ(carried[i].bytes, 4 * 3000);
      for (const TraceEvent& event : {carried[i], waited[i]}) {
        EXPECT_EQ(event.name, i == 0 ? "all_reduce" : "all_gather");
        EXPECT_EQ(event.layer, "world");
        EXPECT_EQ(event.number, comm.log()->last().end()[static_cast<int>(i) - 2].number);
        EXPECT_EQ(event.step, 7);
        EXPECT_LE(event.begin, event.end);
      }
      EXPECT_GE(carried[i].begin, begin);
      EXPECT_LE(carried[i].end, waited[i].end + kRounding) << "it goes on when the transfer is done";
    }
    EXPECT_LE(carried[0].end, carried[1].begin + kRounding);
    for (const TraceEvent& event : lanes["main"]) {
      EXPECT_NE(event.kind, TraceKind::kWait) << "the host waits for nothing";
      EXPECT_NE(event.kind, TraceKind::kTransfer);
      EXPECT_GE(event.begin, begin);
    }
  });
}

/// What a run ends with.
std::string error_of_run(int ranks, const std::function<void(Communicator&)>& body) {
  try {
    run_nccl_ranks(ranks, kTest, body);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(NcclFailure, AnInitThatFailsEndsAllRanks) {
  const std::string error = error_of_run(3, [](Communicator& comm) {
    if (comm.rank() == 1) testing::fake_nccl::fail_next_init(1);
    comm.barrier();
    comm.all_reduce(rough_array(comm, 3000));
  });
  EXPECT_NE(error.find("NCCL"), std::string::npos) << error;
  EXPECT_TRUE(error.find("no way to rank 0") != std::string::npos ||
              error.find("rank 1 has gone") != std::string::npos)
      << error;
}

/// Arrays hold all of a GPU when NCCL comes to want memory.
TEST(NcclFailure, AFullDeviceIsDescribed) {
  const std::size_t before = testing::fake_cuda::machine().memory;
  cudaSetDevice(0);
  std::size_t free = 0, total = 0;
  cudaMemGetInfo(&free, &total);
  // Contexts whose device hung have left some.
  const std::size_t memory = total - free + (std::size_t{16} << 20);
  testing::fake_cuda::machine().memory = memory;
  std::string error;
  std::barrier both_begun(2);
  error_of_run(2, [&](Communicator& comm) {
    const Array send = rough_array(comm, 3000);
    both_begun.arrive_and_wait();  // with what they need: ranks share the device
    std::vector<Array> arrays;
    try {
      while (comm.rank() == 0)
        arrays.emplace_back(comm.context(), Shape{1 << 19}, DType::kFloat32, Purpose::kActivations);
    } catch (const OutOfMemoryError&) {
      arrays.pop_back();
    }
    if (comm.rank() == 0) testing::fake_nccl::fail_next_init(0, true);
    try {
      comm.all_reduce(send);
    } catch (const CommError& failure) {
      if (comm.rank() == 0) error = failure.what();
      throw;
    }
  });
  testing::fake_cuda::machine().memory = before;
  EXPECT_NE(error.find("out of memory"), std::string::npos) << error;
  EXPECT_NE(error.find(concat(" of ", human_bytes(static_cast<std::int64_t>(memory)),
                              " are free on the GPU: arrays hold 1")),
            std::string::npos)
      << error;
  EXPECT_NE(error.find(" MiB activations"), std::string::npos) << error;
  EXPECT_NE(error.find("a smaller train.batch_size"), std::string::npos) << error;
}

/// The network breaks while the ranks wait for their devices.
TEST(NcclFailure, AnAsynchronousErrorEndsTheWait) {
  std::atomic<int> failed = 0;
  const std::string error = error_of_run(3, [&](Communicator& comm) {
    if (comm.rank() == 0) testing::fake_nccl::fail_next_work(2);
    comm.barrier();
    try {
      const Array sum = comm.all_reduce(rough_array(comm, 3000));  // where another has heard of it already
      to_vector<float>(comm, sum);                                 // comes back, with nothing in it
      comm.all_reduce(sum);
    } catch (const CommError&) {
      ++failed;
      throw;
    }
  });
  EXPECT_EQ(failed, 3);
  EXPECT_TRUE(error.find("the network broke") != std::string::npos ||
              error.find("has gone") != std::string::npos)
      << error;
}

/// One rank's GPU hangs; a watchdog aborts.
TEST(NcclFailure, AnAbortEndsTheWaitForAPeerThatHangs) {
  const std::string error = error_of_run(3, [](Communicator& comm) {
    if (comm.rank() == 0) testing::fake_nccl::stop(1);
    comm.barrier();
    const Array sum = comm.all_reduce(rough_array(comm, 3000));
    std::jthread watchdog([&] {
      if (comm.rank() == 0) comm.abort(1);
    });
    to_vector<float>(comm, sum);
    watchdog.join();
    comm.barrier();
  });
  EXPECT_TRUE(error.find("aborted") != std::string::npos || error.find("has gone") != std::string::npos)
      << error;
}

/// A rank that throws takes the others with it.
TEST(NcclFailure, ARankThatThrowsEndsTheOthers) {
  std::atomic<int> peers = 0, called = 0;
  const std::string error = error_of_run(3, [&](Communicator& comm) {
    try {
      comm.all_reduce(rough_array(comm, 3000));
      if (comm.rank() == 2) {
        while (called < 2) std::this_thread::yield();
        throw DataError("rank 2 alone found no file");
      }
      const Array sum = comm.all_reduce(rough_array(comm, 3000));
      ++called;
      to_vector<float>(comm, sum);
      for (;;) comm.check();
    } catch (const PeerError&) {  // who tells of it waits until rank 2 has
      ++peers;
      throw;
    }
  });
  EXPECT_EQ(peers, 2);
  EXPECT_TRUE(error == "rank 2 alone found no file" || error.find("rank 2 has gone") != std::string::npos)
      << error;
}

}  // namespace nccl_communicator_test
}  // namespace jigsaw
