// Groups that lie on several nodes: bits by the documented order, in plain loops, and what leaves a node.
#include "nccl/two_levels.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <mutex>
#include <numeric>

#include "comm/comm_cases.h"
#include "comm/nccl/ranks_nccl.h"
#include "support/fake_cuda/fake_cuda.h"
#include "support/fake_nccl/fake_nccl.h"

namespace jigsaw {
namespace two_levels_test {

using testing::fake_nccl::take_mistakes;
using testing::fake_nccl::take_work;
using Counts = std::vector<std::int64_t>;

std::pair<int, int> grid(const std::vector<int>& ranks, int ranks_per_node) {
  const NodeGrid found = node_grid(ranks, ranks_per_node);
  return {found.nodes, found.local};
}

TEST(NodeGrid, IsOneOfAsManyRanksOnEachOfSeveralNodes) {
  const std::pair none(1, 1);
  EXPECT_EQ(grid({0, 1, 2, 3, 4, 5, 6, 7}, 4), std::pair(2, 4));
  EXPECT_EQ(grid({0, 1, 2, 3, 4, 5, 6, 7}, 2), std::pair(4, 2));
  EXPECT_EQ(grid({0, 2, 4, 6}, 4), std::pair(2, 2));
  EXPECT_EQ(grid({9, 8, 1, 0, 5, 4}, 4), std::pair(3, 2));
  EXPECT_EQ(grid({0, 1, 2, 3, 4, 5, 6, 7}, 8), none) << "one node";
  EXPECT_EQ(grid({0, 1, 2, 3, 4, 5, 6, 7}, 3), none) << "the last node has two";
  EXPECT_EQ(grid({0, 4, 8, 12}, 4), none) << "one rank on each node";
  EXPECT_EQ(grid({0, 1, 2, 4, 5, 6, 7, 8}, 4), none) << "three on the first, four on the second";
  EXPECT_EQ(grid({0, 1, 4, 8}, 4), none) << "two on the first";
  EXPECT_EQ(grid({0, 4, 1, 5}, 4), none) << "not one node after the other";
  EXPECT_EQ(grid({0, 1, 4, 5, 2, 3}, 4), none) << "one node comes twice";
  EXPECT_EQ(grid({0, 1, 2, 3}, 0), none) << "nobody knows";
  EXPECT_EQ(grid({0, 1, 2, 3}, 1), none);
  EXPECT_EQ(grid({5}, 4), none);
}

NcclOptions nodes_of(int ranks_per_node, double from = 1) {
  return {.poll_seconds = 0.02, .ranks_per_node = ranks_per_node, .two_levels_from = from};
}

/// Of one element by rank, left to right: the ranks of each node of up to four, and up to four nodes.
template <typename T>
T sum_by_nodes(const std::vector<T>& values, int local) {
  const auto l = static_cast<std::size_t>(local);
  T sum{};
  for (std::size_t node = 0; node * l < values.size(); ++node) {
    T of_node = values[node * l];
    for (std::size_t j = 1; j < l; ++j) of_node += values[node * l + j];
    sum = node == 0 ? of_node : sum + of_node;
  }
  return sum;
}

/// The same of any number of them.
template <typename T>
T sum_by_nodes_for(int owner, const std::vector<T>& values, int local) {
  std::vector<T> sums;
  for (auto node = values.begin(); node != values.end(); node += local)
    sums.push_back(owners_sum(std::vector<T>(node, node + local), owner % local));
  return owners_sum(sums, owner / local);
}

std::int64_t total(const Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

/// Even ones, uneven ones, some ranks without any, a node without any, one rank that has all, remainders,
/// equal ones that are unequally far apart.
const std::vector<Counts> kCounts = {{6, 6, 6, 6, 6, 6, 6, 6},         {21, 0, 49, 63, 77, 91, 105, 119},
                                     {5, 0, 7, 11, 0, 0, 0, 0},        {0, 0, 0, 0, 0, 64, 0, 0},
                                     {13, 13, 13, 12, 12, 12, 12, 12}, {4, 9, 4, 9, 4, 9, 4, 9},
                                     {4, 1, 4, 2, 4, 3, 4, 5}};

template <typename T>
Array rough(const Communicator& comm, std::int64_t count) {
  return make_array<T>(comm.context(), count, [&](auto i) { return rough_value(comm.rank(), i); });
}

template <typename T>
class SummedByNodes : public ::testing::Test {};
using Summed = ::testing::Types<float, double>;
TYPED_TEST_SUITE(SummedByNodes, Summed);

TYPED_TEST(SummedByNodes, ReduceScatterAddsNodesAfterTheirRanks) {
  for (const int local : {4, 2}) {
    for (const Counts& counts : kCounts) {
      SCOPED_TRACE(::testing::PrintToString(counts) + " on nodes of " + std::to_string(local));
      run_nccl_ranks(8, nodes_of(local), [&](Communicator& comm) {
        const Array send = rough<TypeParam>(comm, total(counts));
        const auto own = static_cast<std::size_t>(comm.rank());
        const auto sum = to_vector<TypeParam>(comm, comm.reduce_scatter(send, counts));
        ASSERT_EQ(std::ssize(sum), counts[own]);
        for (std::size_t i = 0; i < sum.size(); ++i) {
          const auto values = rough_values<TypeParam>(8, offsets(counts)[own] + static_cast<std::int64_t>(i));
          EXPECT_EQ(sum[i], sum_by_nodes(values, local)) << i;
          double exact = 0, size = 0;
          for (const TypeParam x : values) {
            exact += static_cast<double>(x);
            size += std::abs(static_cast<double>(x));
          }
          EXPECT_NEAR(sum[i], exact, 1e-6 * size);
        }
        EXPECT_TRUE(same_bits(sum, to_vector<TypeParam>(comm, comm.reduce_scatter(send, counts))));
      });
      EXPECT_EQ(take_mistakes(), std::vector<std::string>());
    }
  }
}

/// Parts of which some are an element longer, and parts that are even, which NCCL gathers.
TYPED_TEST(SummedByNodes, AllReduceAddsNodesAfterTheirRanks) {
  for (const int local : {4, 2}) {
    run_nccl_ranks(8, nodes_of(local), [&](Communicator& comm) {
      for (const std::int64_t count : {5001, 4096}) {
        const Array send = rough<TypeParam>(comm, count).reshaped({1, count});
        const auto sum = to_vector<TypeParam>(comm, comm.all_reduce(send));
        std::vector<TypeParam> wanted;
        for (std::int64_t i = 0; i < count; ++i)
          wanted.push_back(sum_by_nodes(rough_values<TypeParam>(8, i), local));
        EXPECT_TRUE(same_bits(sum, wanted)) << count;
        EXPECT_FALSE(same_bits(sum, reference_sum<TypeParam>(8, count))) << "the test sees no order";
      }
      // Small ones are gathered whole, wherever ranks are.
      const auto small = to_vector<TypeParam>(comm, comm.all_reduce(rough<TypeParam>(comm, 100)));
      EXPECT_TRUE(same_bits(small, reference_sum<TypeParam>(8, 100)));
    });
    EXPECT_EQ(take_mistakes(), std::vector<std::string>());
  }
}

TYPED_TEST(SummedByNodes, MaximumAndMinimumLetNaNWin) {
  const double nan = std::nan("");
  run_nccl_ranks(8, nodes_of(4), [&](Communicator& comm) {
    const Array send = make_array<TypeParam>(comm.context(), 24, [&](auto i) {
      return i % 3 == 2 && comm.rank() == 5 ? nan : 10.0 * static_cast<double>(i) + comm.rank();
    });
    const Counts counts(8, 3);
    const auto highest = to_vector<TypeParam>(comm, comm.reduce_scatter(send, counts, ReduceOp::kMax));
    const auto lowest = to_vector<TypeParam>(comm, comm.reduce_scatter(send, counts, ReduceOp::kMin));
    for (std::size_t i = 0; i < 3; ++i) {
      const double first = 10 * (3.0 * comm.rank() + static_cast<double>(i));
      if (i < 2) {
        EXPECT_EQ(highest[i], TypeParam(first + 7));
        EXPECT_EQ(lowest[i], TypeParam(first));
      } else {
        EXPECT_TRUE(std::isnan(highest[i]) && std::isnan(lowest[i]));
      }
    }
  });
  EXPECT_EQ(take_mistakes(), std::vector<std::string>());
}

/// More ranks on a node, or more nodes, than are added from left to right; six of them in two orders.
TEST(TwoLevels, AddsManyByLevels) {
  for (const auto& [ranks, local] : {std::pair(16, 8), {12, 6}, {12, 2}}) {
    run_nccl_ranks(ranks, nodes_of(local), [&](Communicator& comm) {
      const Counts counts(static_cast<std::size_t>(ranks), 5);
      const auto sum = to_vector<float>(comm, comm.reduce_scatter(rough<float>(comm, 5 * ranks), counts));
      for (std::size_t i = 0; i < 5; ++i) {
        const auto values = rough_values<float>(ranks, 5 * comm.rank() + static_cast<std::int64_t>(i));
        EXPECT_EQ(sum[i], sum_by_nodes_for(comm.rank(), values, local)) << ranks << " on nodes of " << local;
      }
    });
    EXPECT_EQ(take_mistakes(), std::vector<std::string>());
  }
}

/// Calls under way while other work of the rank takes memory.
TEST(TwoLevels, WhatSumsNeedIsKeptUntilTheyAreThere) {
  run_nccl_ranks(8, nodes_of(4), [](Communicator& comm) {
    const Counts counts = uneven_counts(8, 50);
    const auto own = static_cast<std::size_t>(comm.rank());
    const Array send = rough<float>(comm, total(counts));
    std::vector<Pending> pending;
    for (int call = 0; call < 4; ++call) {
      pending.push_back(comm.start_reduce_scatter(send, counts));
      for (const std::int64_t count : {total(counts), counts[own], std::int64_t{100}})
        make_array<float>(comm.context(), count, [](auto) { return -1; });
    }
    for (Pending& call : pending) {
      const auto sum = to_vector<float>(comm, call.wait());
      for (std::size_t i = 0; i < sum.size(); ++i) {
        const auto values = rough_values<float>(8, offsets(counts)[own] + static_cast<std::int64_t>(i));
        EXPECT_EQ(sum[i], sum_by_nodes(values, 4));
      }
    }
  });
  EXPECT_EQ(take_mistakes(), std::vector<std::string>());
}

template <typename T>
class GatheredByNodes : public ::testing::Test {};
using Gathered = ::testing::Types<float, double, BFloat16>;
TYPED_TEST_SUITE(GatheredByNodes, Gathered);

TYPED_TEST(GatheredByNodes, BringsEachPieceToItsPlace) {
  for (const int local : {4, 2}) {
    for (const Counts& counts : kCounts) {
      run_nccl_ranks(8, nodes_of(local), [&](Communicator& comm) {
        const auto own = static_cast<std::size_t>(comm.rank());
        const Array piece = make_array<TypeParam>(comm.context(), counts[own],
                                                  [&](auto i) { return exact_value(comm.rank(), i); });
        std::vector<TypeParam> wanted;
        for (int rank = 0; rank < 8; ++rank) {
          for (std::int64_t i = 0; i < counts[static_cast<std::size_t>(rank)]; ++i)
            wanted.emplace_back(exact_value(rank, i));
        }
        EXPECT_TRUE(same_bits(to_vector<TypeParam>(comm, comm.all_gather(piece, counts)), wanted));
      });
      EXPECT_EQ(take_mistakes(), std::vector<std::string>());
    }
  }
}

/// Groups by their ranks in the job, on nodes of four: what they add in which order.
TEST(TwoLevels, GroupsThatWereSplitKnowTheirNodes) {
  struct Case {
    std::vector<int> ranks;  ///< in the group's order
    int local;               ///< 1: directly
  };
  for (const Case& each :
       {Case{{0, 1, 4, 5}, 2}, Case{{7, 6, 5, 4, 3, 2, 1, 0}, 4}, Case{{0, 4}, 1}, Case{{0, 1, 2, 4}, 1},
        Case{{0, 4, 1, 5}, 1}, Case{{0, 1, 2, 3}, 1}, Case{{1, 3, 4, 6}, 2}}) {
    SCOPED_TRACE(::testing::PrintToString(each.ranks));
    run_nccl_ranks(8, nodes_of(4), [&](Communicator& comm) {
      const auto place = [&](int rank) {
        return static_cast<int>(std::find(each.ranks.begin(), each.ranks.end(), rank) - each.ranks.begin());
      };
      const auto size = static_cast<int>(each.ranks.size());
      const auto group = comm.split("some", [&](int rank) {
        return place(rank) < size ? std::pair(0, place(rank)) : std::pair(1 + rank, 0);
      });
      if (group->size() == 1) return;
      const Counts counts(static_cast<std::size_t>(size), 9);
      const auto sum =
          to_vector<float>(*group, group->reduce_scatter(rough<float>(*group, 9 * size), counts));
      for (std::int64_t i = 0; i < 9; ++i) {
        const auto values = rough_values<float>(size, 9 * group->rank() + i);
        const float wanted =
            each.local > 1 ? sum_by_nodes(values, each.local) : owners_sum(values, group->rank());
        EXPECT_EQ(sum[static_cast<std::size_t>(i)], wanted) << i;
      }
    });
    EXPECT_EQ(take_mistakes(), std::vector<std::string>());
  }
}

/// What left each node in a call of 8 ranks on nodes of so many, of which the communicator knows or not.
std::map<int, std::int64_t> out_of_nodes(int local, bool known,
                                         const std::function<void(Communicator&)>& call) {
  take_work();
  run_nccl_ranks(8, nodes_of(known ? local : 0), call);
  EXPECT_EQ(take_mistakes(), std::vector<std::string>());
  return take_work().out_of_nodes(local);
}

/// Of the elements that ranks of a node own, and of all others.
std::int64_t of_node(const Counts& counts, int node, int local) {
  return total({counts.begin() + node * local, counts.begin() + (node + 1) * local});
}

/// One sum for each element that another node owns leaves a node, and directly one from each of its ranks.
TEST(TwoLevels, SumsLeaveANodeOnce) {
  for (const int local : {4, 2}) {
    for (const Counts& counts : kCounts) {
      const auto call = [&](Communicator& comm) {
        to_vector<float>(comm, comm.reduce_scatter(rough<float>(comm, total(counts)), counts));
      };
      auto in_two = out_of_nodes(local, true, call), direct = out_of_nodes(local, false, call);
      for (int node = 0; node < 8 / local; ++node) {
        const std::int64_t least = 4 * (total(counts) - of_node(counts, node, local));
        EXPECT_EQ(in_two[node], least) << ::testing::PrintToString(counts);
        EXPECT_EQ(direct[node], local * least);
      }
    }
  }
}

/// As many as share nodes of eight GPUs.
TEST(TwoLevels, SumsOfFourNodesOfEightLeaveThemOnce) {
  const Counts counts(32, 4);
  std::array<std::int64_t, 2> left{};
  for (const bool known : {true, false}) {
    take_work();
    run_nccl_ranks(32, nodes_of(known ? 8 : 0), [&](Communicator& comm) {
      const auto sum = to_vector<float>(comm, comm.reduce_scatter(rough<float>(comm, 128), counts));
      const auto values = rough_values<float>(32, 4 * comm.rank());
      EXPECT_EQ(sum[0], known ? sum_by_nodes_for(comm.rank(), values, 8) : owners_sum(values, comm.rank()));
    });
    left[known ? 0 : 1] = take_work().out_of_nodes(8).at(2);
  }
  EXPECT_EQ(left[0], 512 * 3 / 4);
  EXPECT_EQ(left[1], 512 * 6);
}

/// Uneven pieces go to each other node once, and directly to each of its ranks.
TEST(TwoLevels, PiecesLeaveANodeOnceForEachOther) {
  for (const int local : {4, 2}) {
    for (const Counts& counts : kCounts) {
      if (&counts == &kCounts.front()) continue;  // which NCCL gathers
      const auto call = [&](Communicator& comm) {
        const auto own = static_cast<std::size_t>(comm.rank());
        to_vector<float>(comm, comm.all_gather(rough<float>(comm, counts[own]), counts));
      };
      auto in_two = out_of_nodes(local, true, call), direct = out_of_nodes(local, false, call);
      for (int node = 0; node < 8 / local; ++node) {
        const std::int64_t least = 4 * (8 / local - 1) * of_node(counts, node, local);
        EXPECT_EQ(in_two[node], least) << ::testing::PrintToString(counts);
        EXPECT_EQ(direct[node], local * least);
      }
    }
  }
}

/// Both, of parts of which some are an element longer.
TEST(TwoLevels, AllReducesLeaveANodeTwice) {
  constexpr std::int64_t kCount = 5001;
  for (const int local : {4, 2}) {
    const auto call = [](Communicator& comm) {
      to_vector<float>(comm, comm.all_reduce(rough<float>(comm, kCount)));
    };
    auto in_two = out_of_nodes(local, true, call), direct = out_of_nodes(local, false, call);
    const double nodes = 8 / local, least = 4 * 2 * (nodes - 1) / nodes * kCount;
    for (int node = 0; node < 8 / local; ++node) {
      EXPECT_LE(static_cast<double>(in_two[node]), least + 4 * 2 * 8);
      EXPECT_GE(static_cast<double>(direct[node]), local * (least - 4 * 2 * 8));
    }
    std::printf("all_reduce of %lld bytes on %d nodes of %d: %lld bytes leave a node, directly %lld\n",
                static_cast<long long>(4 * kCount), 8 / local, local, static_cast<long long>(in_two[0]),
                static_cast<long long>(direct[0]));
  }
}

/// Nodes with unequal numbers of a group's ranks.
TEST(TwoLevels, IrregularGroupsGoDirectly) {
  run_nccl_ranks(8, nodes_of(3), [](Communicator& comm) {
    const Counts counts = uneven_counts(8);
    const auto own = static_cast<std::size_t>(comm.rank());
    const auto sum = to_vector<float>(comm, comm.reduce_scatter(rough<float>(comm, total(counts)), counts));
    EXPECT_TRUE(same_bits(sum, reference_piece<float>(8, comm.rank(), offsets(counts)[own], counts[own])));
    EXPECT_TRUE(same_bits(to_vector<float>(comm, comm.all_reduce(rough<float>(comm, 5001))),
                          reference_sum<float>(8, 5001)));
  });
  EXPECT_EQ(take_mistakes(), std::vector<std::string>());
}

/// In all as many bytes as directly, on each rank of a sum those of the closed form; over a group always.
TEST(TwoLevels, SendsAsMuchInAllAsDirectly) {
  const Counts counts = uneven_counts(8, 2);
  std::mutex mutex;
  double gathered = 0, by_closed_form = 0;
  run_nccl_ranks(8, nodes_of(4), [&](Communicator& comm) {
    const auto own = static_cast<std::size_t>(comm.rank());
    comm.reduce_scatter(rough<float>(comm, total(counts)), counts);
    comm.all_gather(rough<float>(comm, counts[own]), counts);
    const auto& traffic = comm.traffic();
    constexpr auto kSum = static_cast<std::size_t>(Collective::kReduceScatter),
                   kGather = static_cast<std::size_t>(Collective::kAllGather);
    EXPECT_EQ(traffic.sent[kSum].bytes, traffic.sent_bytes[kSum]);
    const std::lock_guard lock(mutex);
    gathered += traffic.sent[kGather].bytes;
    by_closed_form += traffic.sent_bytes[kGather];
  });
  EXPECT_EQ(gathered, by_closed_form);
}

/// One kernel adds the pieces of all nodes where they lie equally far apart, and one the nodes. Two measure
/// how long the stream for computation waits.
TEST(TwoLevels, LaunchesTwoKernelsForEvenPieces) {
  std::int64_t before = 0;
  run_nccl_ranks(8, nodes_of(2), [&](Communicator& comm) {
    const Array send = rough<float>(comm, 800);
    to_vector<float>(comm, send);
    comm.barrier();
    if (comm.rank() == 0) before = testing::fake_cuda::kernels_run();
    comm.barrier();
    to_vector<float>(comm, comm.reduce_scatter(send, Counts(8, 100)));
  });
  EXPECT_EQ(testing::fake_cuda::kernels_run() - before, 8 * (2 + 2));
}

/// Two nodes of four, where a rank sends three mean pieces less out of its node: from a MiB on.
TEST(TwoLevels, SmallArraysGoDirectly) {
  for (const std::int64_t count : {699048, 699056}) {
    take_work();
    run_nccl_ranks(8, {.ranks_per_node = 4}, [&](Communicator& comm) {
      const Array send = make_array<float>(comm.context(), count, [](auto) { return 1; });
      to_vector<float>(comm, comm.reduce_scatter(send, Counts(8, count / 8)));
    });
    EXPECT_EQ(take_work().out_of_nodes(4).at(0), 4 * count / 2 * (count == 699048 ? 4 : 1));
  }
}

}  // namespace two_levels_test
}  // namespace jigsaw
