// Counted bytes against the closed forms, written out here anew, and against the record communicator.
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>

#include "comm/comm_cases.h"
#include "comm/ranks.h"
#include "comm/record/record.h"
#include "comm/self/self.h"

namespace jigsaw {
namespace traffic_test {

/// One call of each kind over uneven float64 pieces, and one on a group split off.
void call_everything(Communicator& comm) {
  const int n = comm.size();
  const auto counts = uneven_counts(n, 2);
  const auto whole = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  const std::vector<std::int64_t> ones(static_cast<std::size_t>(n), 1);
  const auto array = [&](std::int64_t count) {
    return upload(comm.context(), Array::zeros(comm.context().host(), {count}, DType::kFloat64));
  };
  comm.all_gather(array(counts[static_cast<std::size_t>(comm.rank())]), counts);
  comm.reduce_scatter(array(whole), counts);
  comm.all_reduce(array(10));
  comm.all_reduce(array(600 + n));
  comm.all_to_all(array(n), ones, ones);
  comm.broadcast(array(5), n - 1);
  const std::vector<Message> sends = {{(comm.rank() + 1) % n, 0, 3}, {comm.rank(), 0, 1}};
  const std::vector<Message> receives = {{(comm.rank() + n - 1) % n, 0, 3}, {comm.rank(), 3, 1}};
  EXPECT_EQ(comm.exchange(array(3), sends, receives, 4).count(), 4);
  const auto pairs = comm.split("pair", [](int rank) { return std::make_pair(rank / 2, rank); });
  pairs->all_reduce(array(7));
  comm.barrier();
}

/// Whether a run over MPI cuts messages, as it does above MpiOptions::largest_count.
bool in_small_messages() {
  return std::getenv("JIGSAW_TEST_LARGEST_COUNT") != nullptr;
}

TEST(Traffic, FollowsTheClosedForms) {
  on_ranks([](Communicator& comm) {
    call_everything(comm);
    const int n = comm.size();
    const auto counts = uneven_counts(n, 2);
    const double whole = static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
    const double own = static_cast<double>(counts[static_cast<std::size_t>(comm.rank())]);
    const bool has_pair = comm.rank() / 2 < n / 2;
    std::array<double, kCollectives> expected = {
        8 * (n - 1) * own,
        8 * (whole - own),
        8 * 2.0 * (n - 1) / n * (10 + 600 + n) + (has_pair ? 8.0 * 7 : 0),
        8.0 * (n - 1),
        comm.rank() == n - 1 ? 8.0 * 5 * (n - 1) : 0,
        n > 1 ? 8.0 * 3 : 0};
    for (std::size_t kind = 0; kind < expected.size(); ++kind) {
      EXPECT_DOUBLE_EQ(comm.traffic().sent_bytes[kind], expected[kind])
          << name(static_cast<Collective>(kind));
      const bool twice = kind == static_cast<std::size_t>(Collective::kAllReduce) && has_pair;
      const int calls = kind == static_cast<std::size_t>(Collective::kAllReduce) ? 2 : 1;
      EXPECT_EQ(comm.traffic().calls[kind], n == 1 ? 0 : twice ? calls + 1 : calls);
    }
    EXPECT_EQ(comm.traffic().seconds > 0, n > 1);
  });
}

TEST(Traffic, RecordCountsTheSame) {
  on_ranks([](Communicator& comm) {
    call_everything(comm);
    Context meta = Context::make_meta();
    const auto record = make_record_communicator(meta, comm.rank(), comm.size());
    call_everything(*record);
    EXPECT_EQ(record->traffic().sent_bytes, comm.traffic().sent_bytes);
    EXPECT_EQ(record->traffic().calls, comm.traffic().calls);
    EXPECT_EQ(record->log()->fingerprint(), comm.log()->fingerprint());
    for (std::size_t kind = 0; kind < comm.traffic().sent.size(); ++kind) {
      if (!in_small_messages()) {
        EXPECT_EQ(record->traffic().sent[kind].messages, comm.traffic().sent[kind].messages) << kind;
      }
      EXPECT_EQ(record->traffic().sent[kind].bytes, comm.traffic().sent[kind].bytes) << kind;
    }
  });
}

/// What went out, as counted where messages are handed over, over all ranks is what the closed forms say of
/// all ranks; of a reduce_scatter and of what goes to given peers on each rank. A small all_reduce is
/// exchanged whole instead, once with every source of every level.
TEST(Traffic, TransportsSendWhatTheClosedFormsSay) {
  on_ranks([](Communicator& comm) {
    call_everything(comm);
    const Traffic counted = comm.traffic();
    const int n = comm.size();
    std::vector<double> both;
    for (std::size_t kind = 0; kind < kCollectives; ++kind) {
      both.push_back(counted.sent[kind].bytes);
      both.push_back(counted.sent_bytes[kind]);
    }
    double whole = 0;
    for (const Level& level : levels(n, comm.rank())) whole += static_cast<double>(level.sources.size());
    const bool has_pair = comm.rank() / 2 < n / 2;
    both.push_back(8.0 * 10 * whole + (has_pair ? 8.0 * 7 : 0));
    both.push_back(8.0 * 10 * 2 * (n - 1) / n + (has_pair ? 8.0 * 7 : 0));
    const std::vector<double> all = comm.all_reduce(both, ReduceOp::kSum);
    for (std::size_t kind = 0; kind < kCollectives; ++kind) {
      const bool reduces = kind == static_cast<std::size_t>(Collective::kAllReduce);
      const double small = reduces ? all[all.size() - 2] - all[all.size() - 1] : 0;
      EXPECT_NEAR(all[2 * kind] - small, all[2 * kind + 1], 1e-9 * all[2 * kind + 1])
          << name(static_cast<Collective>(kind));
    }
    for (const Collective kind : {Collective::kReduceScatter, Collective::kAllToAll, Collective::kExchange}) {
      const auto k = static_cast<std::size_t>(kind);
      EXPECT_EQ(counted.sent[k].bytes, counted.sent_bytes[k]) << name(kind);
    }
    // The barrier in call_everything: a message without bytes to each source of each level.
    EXPECT_EQ(static_cast<double>(counted.sent[kCollectives].messages), whole);
    EXPECT_EQ(counted.sent[kCollectives].bytes, 0);
  });
}

/// Of an all_to_all that forwards as many messages and bytes go out as is said without the others: at each
/// level to three other parts at most, what is held for them.
TEST(Traffic, ForwardedBlocksAreCounted) {
  on_ranks([](Communicator& comm) {
    const int n = comm.size();
    const std::vector<std::int64_t> ones(static_cast<std::size_t>(n), 1);
    const auto call = [&](Communicator& on) {
      on.all_to_all(upload(on.context(), Array::zeros(on.context().host(), {n}, DType::kFloat64)), ones, ones,
                    2);
      return on.traffic().sent[static_cast<std::size_t>(Collective::kAllToAll)];
    };
    Context meta = Context::make_meta();
    const auto record = make_record_communicator(meta, comm.rank(), n);
    const Sent counted = call(comm), said = call(*record);
    EXPECT_EQ(counted.bytes, said.bytes);
    if (!in_small_messages()) {
      EXPECT_EQ(counted.messages, said.messages);
    }
    EXPECT_LE(said.messages, most_messages(Collective::kAllGather, n, 0));
    if (n > 1 && n <= 4) {
      EXPECT_EQ(said.bytes, 16.0 * (n - 1));
    }
    EXPECT_EQ(comm.traffic().sent_bytes[static_cast<std::size_t>(Collective::kAllToAll)], 8.0 * (n - 1));
  });
}

TEST(Traffic, OneRankAloneSendsNothingAndCopiesNothing) {
  Context context = Context::make_host(Backend::kReference, 1);
  const auto self = make_self_communicator(context);
  EXPECT_EQ(self->size(), 1);
  call_everything(*self);
  EXPECT_EQ(self->traffic().total_bytes(), 0);
  const Array send = make_array<float>(context, 4, [](auto i) { return i; });
  EXPECT_EQ(self->all_reduce(send).identity(), send.identity());
}

}  // namespace traffic_test
}  // namespace jigsaw
