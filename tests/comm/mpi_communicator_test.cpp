// What only MPI can get wrong: bits that differ from the threads', and peers that disagree.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>

#include "base/error.h"
#include "comm/comm_cases.h"
#include "comm/mpi/mpi_session.h"
#include "comm/ranks.h"
#include "comm/thread/run_ranks.h"
#include "kernels/copy.h"
#include "support/cuda_aware_mpi.h"

namespace jigsaw {

/// The job that the tests run in (mpi_main.cpp).
const MpiSession& test_session();

namespace {

TEST(MpiSession, RanksThatAreNotBoundShareAllCores) {
  const MpiSession::OnMachine here = test_session().on_machine();
  EXPECT_GT(here.ranks, 1);
  EXPECT_EQ(here.on_cores, here.ranks);
}

/// All reductions of one rank: a reduce_scatter and all_reduces of both sizes.
template <typename T>
std::vector<std::vector<T>> reductions(Communicator& comm) {
  std::vector<std::vector<T>> results;
  for (const std::int64_t count : {10, 4001}) {
    const Array send =
        make_array<T>(comm.context(), count, [&](auto i) { return rough_value(comm.rank(), i); });
    std::vector<std::int64_t> counts(static_cast<std::size_t>(comm.size()), 1);
    counts[0] += count - comm.size();
    results.push_back(to_vector<T>(comm, comm.all_reduce(send)));
    results.push_back(to_vector<T>(comm, comm.reduce_scatter(send, counts)));
  }
  return results;
}

template <typename T>
void expect_the_threads_bits() {
  on_ranks([](Communicator& comm) {
    const auto first = reductions<T>(comm);
    const auto second = reductions<T>(comm);
    std::vector<std::vector<T>> threads;
    run_ranks(comm.size(), [&](Communicator& thread) {
      auto results = reductions<T>(thread);
      if (thread.rank() == comm.rank()) threads = std::move(results);
    });
    ASSERT_EQ(first.size(), threads.size());
    for (std::size_t i = 0; i < first.size(); ++i) {
      EXPECT_TRUE(same_bits(first[i], second[i])) << i;
      EXPECT_TRUE(same_bits(first[i], threads[i])) << i;
    }
  });
}

TEST(MpiCommunicator, ReducesToTheThreadsBits) {
  expect_the_threads_bits<float>();
  expect_the_threads_bits<double>();
}

TEST(MpiCommunicator, BuffersAreLetGoAfterTheWait) {
  on_ranks([](Communicator& comm) {
    Arena& arena = comm.context().arena();
    {
      Array send = make_array<float>(comm.context(), 5000, [](auto i) { return i; });
      const Array result = comm.all_reduce(send);
      EXPECT_TRUE(send.unique());
      EXPECT_TRUE(result.unique());
      EXPECT_EQ(arena.current_bytes(Purpose::kWorkspace), 0);
    }
    EXPECT_EQ(arena.current_bytes(Purpose::kActivations), 0);
  });
}

/// Arrays of a device: a CUDA-aware MPI is handed what moves, and no sums, which are formed on the host.
TEST(MpiCommunicator, WhatMovesBetweenDevicesIsHandedToMpiThatTakesIt) {
  on_ranks([](Communicator& comm) {
    const bool hands_over = comm.context().runtime() != nullptr && wants_cuda_aware_mpi();
    const auto counted = [&](const std::function<void()>& call) {
      const std::int64_t before = testing::messages_of_devices();
      call();
      return testing::messages_of_devices() - before;
    };
    const std::int64_t others = comm.size() - 1;
    const std::vector<std::int64_t> counts(static_cast<std::size_t>(comm.size()), 5);
    const Array piece =
        make_array<float>(comm.context(), 5, [&](auto i) { return exact_value(comm.rank(), i); });
    const Array whole = make_array<float>(comm.context(), 5 * comm.size(),
                                          [&](auto i) { return exact_value(comm.rank(), i); });
    EXPECT_EQ(counted([&] { comm.all_to_all(whole, counts, counts); }), hands_over ? 2 * others : 0);
    const int next = (comm.rank() + 1) % comm.size(), last = (comm.rank() + comm.size() - 1) % comm.size();
    const std::vector<Message> sends = {{next, 0, 3}, {comm.rank(), 3, 2}},
                               receives = {{last, 2, 3}, {comm.rank(), 0, 2}};
    EXPECT_EQ(counted([&] { comm.exchange(piece, sends, receives, 5); }), hands_over ? 2 : 0);
    EXPECT_EQ(counted([&] { comm.all_gather(piece, counts); }) > 0, hands_over);
    EXPECT_EQ(counted([&] { comm.broadcast(piece, 0); }) > 0, hands_over);
    EXPECT_EQ(counted([&] { comm.all_reduce(whole); }), 0);
    EXPECT_EQ(counted([&] { comm.reduce_scatter(whole, counts); }), 0);
  });
}

/// What a device has yet to compute is not sent before, and what it still reads is not overwritten: memory
/// goes round, and the host waits for nothing in between. Every other rank is late, so that messages lie
/// there.
TEST(MpiCommunicator, CallsFollowWhatTheDeviceHasToDo) {
  on_ranks([](Communicator& comm) {
    Context& context = comm.context();
    constexpr std::int64_t kCount = 500;
    const auto value = [](int rank, int round, std::int64_t i) {
      return exact_value(rank, i) + static_cast<double>(round);
    };
    const int next = (comm.rank() + 1) % comm.size(), last = (comm.rank() + comm.size() - 1) % comm.size();
    const std::vector<Message> sends = {{next, 0, kCount}}, receives = {{last, 0, kCount}};
    std::vector<Array> kept;
    for (int round = 0; round < 6; ++round) {
      const Array made =
          make_array<float>(context, kCount, [&](auto i) { return value(comm.rank(), round, i); });
      const Box all = Box::whole({kCount});
      Array sent(context, {kCount}, DType::kFloat32, Purpose::kActivations);
      copy_box(context, made, all, sent, all);
      Pending exchange = comm.start_exchange(sent, sends, receives, kCount);
      const auto late = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
      while ((comm.rank() + round) % 2 == 0 && std::chrono::steady_clock::now() < late) exchange.poll();
      const Array came = exchange.wait();
      kept.emplace_back(context, Shape{kCount}, DType::kFloat32, Purpose::kActivations);
      copy_box(context, came, all, kept.back(), all);
    }
    for (int round = 0; round < 6; ++round) {
      const std::vector<float> found = to_vector<float>(comm, kept[static_cast<std::size_t>(round)]);
      std::int64_t wrong = 0;
      for (std::int64_t i = 0; i < kCount; ++i)
        wrong += found[static_cast<std::size_t>(i)] != static_cast<float>(value(last, round, i)) ? 1 : 0;
      EXPECT_EQ(wrong, 0) << round;
    }
  });
}

/// Of groups in which every rank gets something that it does not expect: in larger ones some hear nothing.
TEST(MpiCommunicator, WhatAFailedControlCallLeavesIsNotTakenForTheNextOnes) {
  on_ranks([](Communicator& comm) {
    if (comm.size() > 4) return;
    const std::vector<double> unlike(static_cast<std::size_t>(comm.rank()) + 1, 1.0);
    EXPECT_THROW(comm.all_reduce(unlike, ReduceOp::kSum), CommError);
    EXPECT_EQ(comm.all_reduce(std::vector{2.0}, ReduceOp::kSum)[0], 2.0 * comm.size());
    EXPECT_EQ(comm.broadcast_text(comm.rank() == 0 ? "of the root" : ""), "of the root");
  });
}

/// What others send is received while the device has yet to come to what this rank sends; into memory that
/// the device still uses it is not.
TEST(MpiCommunicator, GathersReceiveBeforeTheOwnPieceIsThere) {
  on_ranks([](Communicator& comm) {
    const std::vector<std::int64_t> counts(static_cast<std::size_t>(comm.size()), 5);
    const Array piece =
        make_array<float>(comm.context(), 5, [&](auto i) { return exact_value(comm.rank(), i); });
    const std::int64_t before = testing::receives_posted();
    Pending pending = comm.start_all_gather(piece, counts);
    const bool in_place = comm.context().runtime() != nullptr && wants_cuda_aware_mpi();
    EXPECT_EQ(testing::receives_posted() > before, !in_place);
    const std::vector<float> found = to_vector<float>(comm, pending.wait());
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_EQ(found[i], exact_value(static_cast<int>(i / 5), static_cast<std::int64_t>(i % 5))) << i;
  });
}

/// While the host waits for one transfer's numbers, or for all, those before it whose numbers have come are
/// sent: work of the device between the two numbers looks whether they were.
TEST(MpiCommunicator, WhatHasComeIsSentWhileTheHostWaitsForWhatComesLater) {
  on_ranks([](Communicator& comm) {
    auto* const device = dynamic_cast<HostKernelRuntime*>(comm.context().runtime());
    if (device == nullptr) return;
    const int next = (comm.rank() + 1) % comm.size(), last = (comm.rank() + comm.size() - 1) % comm.size();
    const std::vector<Message> sends = {{next, 0, 5}}, receives = {{last, 0, 5}};
    const Array piece =
        make_array<float>(comm.context(), 5, [&](auto i) { return exact_value(comm.rank(), i); });
    const auto sent = [&] {
      return comm.traffic().sent[static_cast<std::size_t>(Collective::kExchange)].messages;
    };
    for (const bool waits_for_all : {false, true}) {
      const std::int64_t before = sent();
      std::int64_t between = before;
      Pending first = comm.start_exchange(piece, sends, receives, 5);
      device->launch(Stream::kCommunication, [&](Context&) { between = sent(); });
      Pending second = comm.start_exchange(piece, sends, receives, 5);
      EXPECT_EQ(sent(), before);
      if (waits_for_all) {
        comm.barrier();
      } else {
        second.wait();
      }
      EXPECT_EQ(between, before + 1);
      first.wait();
      if (second.valid()) second.wait();
    }
  });
}

}  // namespace
}  // namespace jigsaw
