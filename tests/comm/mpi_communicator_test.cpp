// What only MPI can get wrong: bits that differ from the threads', and peers that disagree.
#include <gtest/gtest.h>

#include "base/error.h"
#include "comm/comm_cases.h"
#include "comm/ranks.h"
#include "comm/thread/run_ranks.h"

namespace jigsaw {
namespace {

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

}  // namespace
}  // namespace jigsaw
