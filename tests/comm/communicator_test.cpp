// Every collective against a serial reference; the same source runs on threads and under mpirun.
#include "comm/communicator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "array/host_view.h"
#include "base/error.h"
#include "base/text.h"
#include "comm/comm_cases.h"
#include "comm/ranks.h"
#include "support/error_of.h"

namespace jigsaw {
namespace communicator_test {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

template <typename T>
class AnyType : public ::testing::Test {};
using AllTypes = ::testing::Types<float, double, BFloat16>;
TYPED_TEST_SUITE(AnyType, AllTypes);

template <typename T>
class SummedType : public ::testing::Test {};
using SummedTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(SummedType, SummedTypes);

TYPED_TEST(AnyType, AllGatherOfUnevenPieces) {
  on_ranks([](Communicator& comm) {
    const auto counts = uneven_counts(comm.size(), 5);
    const auto own = counts[static_cast<std::size_t>(comm.rank())];
    const Array result = comm.all_gather(
        make_array<TypeParam>(comm.context(), own, [&](auto i) { return exact_value(comm.rank(), i); }),
        counts);
    std::vector<TypeParam> expected;
    for (int r = 0; r < comm.size(); ++r) {
      for (std::int64_t i = 0; i < counts[static_cast<std::size_t>(r)]; ++i) {
        expected.emplace_back(exact_value(r, i));
      }
    }
    EXPECT_EQ(result.rank(), 1);
    EXPECT_TRUE(same_bits(to_vector<TypeParam>(comm, result), expected));
  });
}

/// To each receiver at once, and by levels in blocks.
TYPED_TEST(AnyType, AllToAllOfUnevenPieces) {
  const auto count = [](int from, int to) { return std::int64_t{(from * 3 + to * 5 + 1) % 4} * 6; };
  const auto value = [](int from, int to, std::int64_t i) { return exact_value(from + 8 * to, i); };
  on_ranks([&](Communicator& comm) {
    std::vector<std::int64_t> send_counts;
    std::vector<std::int64_t> receive_counts;
    std::vector<TypeParam> sent;
    std::vector<TypeParam> expected;
    for (int peer = 0; peer < comm.size(); ++peer) {
      send_counts.push_back(count(comm.rank(), peer));
      receive_counts.push_back(count(peer, comm.rank()));
      for (std::int64_t i = 0; i < send_counts.back(); ++i) sent.emplace_back(value(comm.rank(), peer, i));
      for (std::int64_t i = 0; i < receive_counts.back(); ++i) {
        expected.emplace_back(value(peer, comm.rank(), i));
      }
    }
    const Array send = make_array<TypeParam>(comm.context(), std::ssize(sent),
                                             [&](auto i) { return sent[static_cast<std::size_t>(i)]; });
    for (const std::int64_t block : {0, 18, 25}) {
      const Array result = comm.all_to_all(send, send_counts, receive_counts, block);
      EXPECT_TRUE(same_bits(to_vector<TypeParam>(comm, result), expected)) << block;
    }
    if (comm.size() > 1) {
      EXPECT_THROW(comm.all_to_all(send, send_counts, receive_counts, 1), CommError);
    }
  });
}

TYPED_TEST(AnyType, BroadcastFromEveryRoot) {
  on_ranks([](Communicator& comm) {
    for (int root = 0; root < comm.size(); ++root) {
      const auto value = [root](auto i) { return exact_value(root, i); };
      const auto other = [](auto) { return -1.0; };
      const Array send = comm.rank() == root ? make_array<TypeParam>(comm.context(), 30, value)
                                             : make_array<TypeParam>(comm.context(), 30, other);
      const Array result = comm.broadcast(send.reshaped({5, 6}), root);
      EXPECT_EQ(result.shape(), (Shape{5, 6}));
      EXPECT_TRUE(same_bits(to_vector<TypeParam>(comm, result),
                            to_vector<TypeParam>(comm, make_array<TypeParam>(comm.context(), 30, value))));
    }
  });
}

/// Both neighbours on a ring get one end each (with two ranks, both go to the same peer), and the rank itself
/// a copy; the last rank sends a second, empty message to the first.
TYPED_TEST(AnyType, ExchangeOnARing) {
  on_ranks([](Communicator& comm) {
    const int n = comm.size();
    const int up = (comm.rank() + 1) % n;
    const int down = (comm.rank() + n - 1) % n;
    const Array send =
        make_array<TypeParam>(comm.context(), 20, [&](auto i) { return exact_value(comm.rank(), i); });
    std::vector<Message> sends = {{up, 12, 8}, {down, 0, 9}, {comm.rank(), 5, 2}};
    // In the order in which the peers send: a peer's upward message comes before its downward one.
    std::vector<Message> receives = {{down, 0, 8}, {up, 8, 9}, {comm.rank(), 17, 2}};
    if (comm.rank() == n - 1) sends.push_back({0, 20, 0});
    if (comm.rank() == 0) receives.push_back({n - 1, 19, 0});
    const auto result = to_vector<TypeParam>(comm, comm.exchange(send, sends, receives, 19));
    std::vector<TypeParam> expected;
    for (int i = 12; i < 20; ++i) expected.emplace_back(exact_value(down, i));
    for (int i = 0; i < 9; ++i) expected.emplace_back(exact_value(up, i));
    for (int i = 5; i < 7; ++i) expected.emplace_back(exact_value(comm.rank(), i));
    EXPECT_TRUE(same_bits(result, expected));
  });
}

TYPED_TEST(SummedType, ReduceScatterAddsInOneOrder) {
  on_ranks([](Communicator& comm) {
    const auto counts = uneven_counts(comm.size(), 7);
    const auto whole = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
    const Array send =
        make_array<TypeParam>(comm.context(), whole, [&](auto i) { return rough_value(comm.rank(), i); });
    const Array result = comm.reduce_scatter(send, counts);
    const auto own = static_cast<std::size_t>(comm.rank());
    EXPECT_TRUE(
        same_bits(to_vector<TypeParam>(comm, result),
                  reference_piece<TypeParam>(comm.size(), comm.rank(), offsets(counts)[own], counts[own])));
  });
}

/// Fewer elements than ranks, small, and large enough to go in two rounds.
TYPED_TEST(SummedType, AllReduceAddsInOneOrder) {
  on_ranks([](Communicator& comm) {
    for (const std::int64_t count : {1, 2, 100, 5001}) {
      const Array send =
          make_array<TypeParam>(comm.context(), count, [&](auto i) { return rough_value(comm.rank(), i); });
      EXPECT_TRUE(same_bits(to_vector<TypeParam>(comm, comm.all_reduce(send)),
                            reference_sum<TypeParam>(comm.size(), count)));
    }
  });
}

TYPED_TEST(SummedType, MaximumAndMinimumLetNaNWin) {
  on_ranks([](Communicator& comm) {
    const int last = comm.size() - 1;
    const Array send = make_array<TypeParam>(comm.context(), 3, [&](auto i) {
      return i == 2 && comm.rank() == last / 2 ? kNaN : 10.0 * static_cast<double>(i) + comm.rank();
    });
    const auto highest = to_vector<TypeParam>(comm, comm.all_reduce(send, ReduceOp::kMax));
    const auto lowest = to_vector<TypeParam>(comm, comm.all_reduce(send, ReduceOp::kMin));
    EXPECT_EQ(highest[0], TypeParam(last));
    EXPECT_EQ(highest[1], TypeParam(10 + last));
    EXPECT_EQ(lowest[0], TypeParam(0));
    EXPECT_EQ(lowest[1], TypeParam(10));
    EXPECT_TRUE(std::isnan(highest[2]) && std::isnan(lowest[2]));
  });
}

TEST(Communicator, EmptyArraysTravelNowhere) {
  on_ranks([](Communicator& comm) {
    const std::vector<std::int64_t> none(static_cast<std::size_t>(comm.size()), 0);
    const Array empty(comm.context(), {0}, DType::kFloat32);
    EXPECT_EQ(comm.all_gather(empty, none).count(), 0);
    EXPECT_EQ(comm.reduce_scatter(empty, none).count(), 0);
    EXPECT_EQ(comm.all_reduce(empty).count(), 0);
    EXPECT_EQ(comm.broadcast(empty, 0).count(), 0);
    EXPECT_EQ(comm.all_to_all(empty, none, none).count(), 0);
    EXPECT_EQ(comm.exchange(empty, {}, {}, 0).count(), 0);
    EXPECT_EQ(comm.traffic().total_bytes(), 0);
  });
}

/// Calls start in one order; ranks wait for them in different orders, some poll in between, and write over
/// what they sent as soon as they may.
TEST(Communicator, RanksMayWaitInAnyOrder) {
  constexpr std::int64_t kCount = 3000;
  on_ranks([](Communicator& comm) {
    std::vector<Array> sent;
    std::vector<Pending> pending;
    for (int call = 0; call < 6; ++call) {
      sent.push_back(make_array<float>(comm.context(), kCount + call,
                                       [&](auto i) { return rough_value(comm.rank(), i); }));
      pending.push_back(comm.start_all_reduce(sent.back()));
      if (comm.rank() == 1) pending.front().poll();
    }
    if (comm.rank() == 0) comm.barrier();
    for (int step = 0; step < 6; ++step) {
      const auto call = static_cast<std::size_t>((step * (comm.rank() % 2 == 0 ? 1 : 5) + comm.rank()) % 6);
      if (comm.rank() % 3 == 1) {
        // A device that works only when somebody waits for it would be asked for ever.
        const bool works_by_itself = comm.context().device() != Device::kSimulated;
        while (!pending[call].poll() && works_by_itself) continue;
      }
      const Array result = pending[call].wait();
      if (comm.size() > 1) {
        const std::vector<double> other(static_cast<std::size_t>(sent[call].count()), -1.0);
        write_values(comm.context(), sent[call], other);
        EXPECT_TRUE(
            same_bits(to_vector<float>(comm, result), reference_sum<float>(comm.size(), result.count())));
      }
    }
    if (comm.rank() != 0) comm.barrier();
  });
}

TEST(Communicator, PendingMayBeDropped) {
  on_ranks([](Communicator& comm) {
    Array send = make_array<float>(comm.context(), 3000, [&](auto i) { return rough_value(comm.rank(), i); });
    Pending kept = comm.start_all_reduce(send);
    { const Pending dropped = comm.start_all_reduce(send); }
    EXPECT_TRUE(same_bits(to_vector<float>(comm, kept.wait()), reference_sum<float>(comm.size(), 3000)));
    EXPECT_FALSE(kept.valid());
    EXPECT_THROW(kept.wait(), Error);
  });
}

TEST(Communicator, SplitsIntoRowsAndReversedColumns) {
  on_ranks([](Communicator& comm) {
    const auto row = comm.split("row", [](int rank) { return std::make_pair(rank / 2, rank); });
    const auto column = comm.split("column", [](int rank) { return std::make_pair(rank % 2, -rank); });
    EXPECT_EQ(row->label(), "row");
    EXPECT_EQ(row->rank(), comm.rank() % 2);
    EXPECT_EQ(row->size(), comm.rank() / 2 == comm.size() / 2 ? 1 : 2);
    EXPECT_EQ(column->rank(), (comm.size() - 1 - comm.rank()) / 2);
    const Array own = make_array<double>(comm.context(), 1, [&](auto) { return comm.rank(); });
    const auto all = to_vector<double>(
        comm,
        column->all_gather(own, std::vector<std::int64_t>(static_cast<std::size_t>(column->size()), 1)));
    ASSERT_EQ(std::ssize(all), column->size());
    for (std::size_t i = 1; i < all.size(); ++i) EXPECT_EQ(all[i - 1] - all[i], 2);
    EXPECT_EQ(static_cast<int>(all.back()), comm.rank() % 2);
    EXPECT_EQ(&row->traffic(), &comm.traffic());
  });
}

TEST(Communicator, ControlValuesAreNotCounted) {
  on_ranks([](Communicator& comm) {
    const std::vector<double> values = {1.0, static_cast<double>(comm.rank()), comm.rank() == 0 ? kNaN : 5};
    const auto sums = comm.all_reduce(values, ReduceOp::kSum);
    const auto highest = comm.all_reduce(values, ReduceOp::kMax);
    EXPECT_EQ(sums[0], comm.size());
    EXPECT_EQ(sums[1], comm.size() * (comm.size() - 1) / 2);
    EXPECT_EQ(highest[1], comm.size() - 1);
    EXPECT_TRUE(std::isnan(highest[2]));
    EXPECT_EQ(comm.traffic().sent.back().messages > 0, comm.size() > 1);
    EXPECT_GT(comm.traffic().control_seconds, 0);
    comm.barrier();
    EXPECT_EQ(comm.traffic().total_bytes(), 0);
  });
}

TEST(Communicator, TextsGoToOneAndComeFromOne) {
  on_ranks([](Communicator& comm) {
    const auto text_of = [](int rank) {
      return std::string(static_cast<std::size_t>(rank * 7 % 5), 'x') + "!";
    };
    for (int root = 0; root < comm.size(); ++root) {
      const std::vector<std::string> texts = comm.gather_text(text_of(comm.rank()), root);
      ASSERT_EQ(std::ssize(texts), comm.rank() == root ? comm.size() : 0);
      for (int r = 0; r < std::ssize(texts); ++r) EXPECT_EQ(texts[static_cast<std::size_t>(r)], text_of(r));
      EXPECT_EQ(comm.scatter_text(texts, root), text_of(comm.rank()));
      EXPECT_EQ(comm.broadcast_text(concat("of ", comm.rank()), root), concat("of ", root));
      EXPECT_EQ(comm.broadcast_text("", root), "");
    }
    const std::string large(200'000, 'y');
    EXPECT_EQ(comm.broadcast_text(comm.rank() == 0 ? large : ""), large);
  });
}

constexpr auto error_of = testing::error_of<CommError>;

TEST(Communicator, RefusesWhatDoesNotFit) {
  on_ranks([](Communicator& comm) {
    const auto ranks = static_cast<std::size_t>(comm.size());
    const std::vector<std::int64_t> threes(ranks, 3);
    const std::vector<std::int64_t> many(ranks + 1, 2);
    std::vector<std::int64_t> negative(ranks, 2);
    negative[0] = -1;
    const Array two(comm.context(), {2}, DType::kFloat32);
    const Array half(comm.context(), {2}, DType::kBfloat16);
    const auto matches = [](const std::string& text, const char* part) {
      return text.find(part) != std::string::npos;
    };
    EXPECT_PRED2(matches, error_of([&] { comm.all_gather(two, threes); }), "want an array of 3 elements");
    EXPECT_PRED2(matches, error_of([&] { comm.all_gather(two, many); }), "counts for");
    EXPECT_PRED2(matches, error_of([&] { comm.all_gather(two, negative); }), "is negative");
    EXPECT_PRED2(matches, error_of([&] { comm.reduce_scatter(two, threes); }), "want an array");
    EXPECT_PRED2(matches, error_of([&] { comm.all_reduce(half); }), "bf16 is not reduced");
    EXPECT_PRED2(matches, error_of([&] { comm.broadcast(two, comm.size()); }), "cannot be the root");
    const Message far{comm.rank(), 1, 2};
    EXPECT_PRED2(matches, error_of([&] { comm.exchange(two, {&far, 1}, {}, 0); }), "does not fit");
    const Message own{comm.rank(), 0, 2};
    EXPECT_PRED2(matches, error_of([&] { comm.exchange(two, {&own, 1}, {}, 0); }), "messages to itself");
    // Nothing was called: the next call is the same one on all ranks.
    comm.barrier();
  });
}

TEST(Communicator, FingerprintsAgreeUntilACallDiffers) {
  on_ranks([](Communicator& comm) {
    const double fresh = comm.log()->fingerprint();
    comm.barrier();
    const double mark = comm.log()->fingerprint();
    EXPECT_NE(mark, fresh);
    EXPECT_EQ(mark, std::floor(mark));
    EXPECT_LT(mark, std::ldexp(1.0, 53));
    const auto own = comm.split("own", [](int rank) { return std::make_pair(rank, 0); });
    const auto agree = [&] {
      const std::vector<double> values = {comm.log()->fingerprint()};
      return comm.all_reduce(values, ReduceOp::kMin) == comm.all_reduce(values, ReduceOp::kMax);
    };
    const Communicator::CallsSoFar before = comm.calls_so_far();
    if (comm.size() > 1 && comm.rank() == 0) own->barrier();
    EXPECT_EQ(agree(), comm.size() == 1);
    const Traffic made = comm.traffic();
    comm.forget_calls(before);
    EXPECT_TRUE(agree());
    EXPECT_EQ(comm.traffic().calls, before.traffic.calls);
    EXPECT_GE(comm.traffic().control_seconds, made.control_seconds) << "time has gone by";
  });
}

}  // namespace communicator_test
}  // namespace jigsaw
