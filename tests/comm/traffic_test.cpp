// Counted bytes against the closed forms, written out here anew, and against the record communicator.
#include <gtest/gtest.h>

#include <numeric>

#include "comm/comm_cases.h"
#include "comm/ranks.h"
#include "comm/record/record.h"
#include "comm/self/self.h"

namespace jigsaw {
namespace {

/// One call of each kind over uneven float64 pieces, and one on a group split off.
void call_everything(Communicator& comm) {
  const int n = comm.size();
  const auto counts = uneven_counts(n, 2);
  const auto whole = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  const std::vector<std::int64_t> ones(static_cast<std::size_t>(n), 1);
  const auto array = [&](std::int64_t count) {
    return Array::zeros(comm.context(), {count}, DType::kFloat64);
  };
  comm.all_gather(array(counts[static_cast<std::size_t>(comm.rank())]), counts);
  comm.reduce_scatter(array(whole), counts);
  comm.all_reduce(array(10));
  comm.all_to_all(array(n), ones, ones);
  comm.broadcast(array(5), n - 1);
  const std::vector<Message> sends = {{(comm.rank() + 1) % n, 0, 3}, {comm.rank(), 0, 1}};
  const std::vector<Message> receives = {{(comm.rank() + n - 1) % n, 0, 3}, {comm.rank(), 3, 1}};
  EXPECT_EQ(comm.exchange(array(3), sends, receives, 4).count(), 4);
  const auto pairs = comm.split("pair", [](int rank) { return std::make_pair(rank / 2, rank); });
  pairs->all_reduce(array(7));
  comm.barrier();
}

TEST(Traffic, FollowsTheClosedForms) {
  on_ranks([](Communicator& comm) {
    call_everything(comm);
    const int n = comm.size();
    const auto counts = uneven_counts(n, 2);
    const double whole = static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
    const double own = static_cast<double>(counts[static_cast<std::size_t>(comm.rank())]);
    const bool has_pair = comm.rank() / 2 < n / 2;
    std::array<double, kCollectives> expected = {8 * (n - 1) * own,
                                                 8 * (whole - own),
                                                 8 * 2.0 * (n - 1) / n * 10 + (has_pair ? 8.0 * 7 : 0),
                                                 8.0 * (n - 1),
                                                 comm.rank() == n - 1 ? 8.0 * 5 * (n - 1) : 0,
                                                 n > 1 ? 8.0 * 3 : 0};
    for (std::size_t kind = 0; kind < expected.size(); ++kind) {
      EXPECT_DOUBLE_EQ(comm.traffic().sent_bytes[kind], expected[kind])
          << name(static_cast<Collective>(kind));
      const bool twice = kind == static_cast<std::size_t>(Collective::kAllReduce) && has_pair;
      EXPECT_EQ(comm.traffic().calls[kind], n == 1 ? 0 : twice ? 2 : 1);
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

}  // namespace
}  // namespace jigsaw
