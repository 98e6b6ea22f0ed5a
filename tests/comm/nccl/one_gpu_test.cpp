// NCCL itself, as far as one GPU can show it: every kind of call on one rank, past the shortcut that leaves a
// group of one alone.
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

#include "comm/comm_cases.h"
#include "comm/self/self.h"
#include "comm/thread/run_ranks.h"
#include "kernels/cuda_context.h"
#include "nccl/nccl_communicator.h"

namespace jigsaw {
namespace one_gpu_test {

class OneGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!nccl_library().built) GTEST_SKIP() << "built without NCCL";
    if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU here";
    context_ = make_cuda_context(0);
    comm_ = make_nccl_communicator(make_self_communicator(*context_), {.groups_of_one = true});
    // Kernels are loaded when they are first launched, which may wait for all that runs: here for another
    // rank's call.
    const Array one = make_array<float>(*context_, 3000, [](auto i) { return rough_value(0, i); });
    comm_->all_reduce(one);
  }

  std::optional<Context> context_;
  std::unique_ptr<Communicator> comm_;
};

TEST_F(OneGpu, CarriesEveryKindOfCall) {
  ASSERT_GE(nccl_library().version, 22602);
  const Array send = make_array<float>(*context_, 3000, [](auto i) { return rough_value(0, i); });
  const auto sent = to_vector<float>(*comm_, send);
  const std::vector<std::int64_t> counts = {3000};
  const Message whole{0, 0, 3000};
  EXPECT_TRUE(same_bits(to_vector<float>(*comm_, comm_->all_gather(send, counts)), sent));
  EXPECT_TRUE(same_bits(to_vector<float>(*comm_, comm_->reduce_scatter(send, counts)), sent));
  EXPECT_TRUE(same_bits(to_vector<float>(*comm_, comm_->all_reduce(send)), sent));
  EXPECT_TRUE(same_bits(to_vector<float>(*comm_, comm_->all_reduce(send.slice(0, {1000}))),
                        std::vector<float>(sent.begin(), sent.begin() + 1000)));
  EXPECT_TRUE(same_bits(to_vector<float>(*comm_, comm_->all_to_all(send, counts, counts)), sent));
  EXPECT_TRUE(same_bits(to_vector<float>(*comm_, comm_->broadcast(send, 0)), sent));
  EXPECT_TRUE(
      same_bits(to_vector<float>(*comm_, comm_->exchange(send, {&whole, 1}, {&whole, 1}, 3000)), sent));
}

/// From here on NCCL lets ranks share a GPU.
constexpr int kFirstToShare = 23000;
/// NCCL reads it once.
const int multi_rank_gpus = setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
/// And this, where two ranks will share one. They are threads, and so in one CUDA context, in which NCCL
/// would have launches follow each other in the order of calls: one rank's second collective before the
/// other's first would then wait for it, as that waits for its peer, in a circle.
const int no_launch_order =
    nccl_library().version < kFirstToShare ? 0 : setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "0", 1);

/// Calls between ranks, which NCCL lets share a GPU from 2.30 on.
TEST_F(OneGpu, TwoRanksShareIt) {
  ASSERT_EQ(multi_rank_gpus, 0);
  ASSERT_EQ(no_launch_order, 0);
  if (nccl_library().version < kFirstToShare) GTEST_SKIP() << "NCCL before 2.30 wants a GPU for each rank";
  run_ranks(
      2, {.time_limit_seconds = 60}, [](int) { return make_cuda_context(0); },
      [](Communicator& world) {
        ASSERT_EQ(world.size(), 2);
        const auto comm =
            make_nccl_communicator(world.split("all", [](int rank) { return std::make_pair(0, rank); }), {});
        const Array send =
            make_array<float>(comm->context(), 3000, [&](auto i) { return rough_value(comm->rank(), i); });
        EXPECT_TRUE(
            same_bits(to_vector<float>(*comm, comm->all_reduce(send)), reference_sum<float>(2, 3000)));
        const std::vector<std::int64_t> even = {1500, 1500}, uneven = {2999, 1};
        const auto own = static_cast<std::size_t>(comm->rank());
        for (const auto& counts : {even, uneven}) {
          EXPECT_TRUE(
              same_bits(to_vector<float>(*comm, comm->reduce_scatter(send, counts)),
                        reference_piece<float>(2, comm->rank(), own == 0 ? 0 : counts[0], counts[own])));
          const Array piece = send.slice(0, {counts[own]});
          EXPECT_EQ(comm->all_gather(piece, counts).count(), 3000);
        }
      });
}

TEST_F(OneGpu, GroupsAreSplit) {
  const auto group = comm_->split("tensor", [](int) { return std::make_pair(0, 0); });
  const Array send = make_array<double>(*context_, 600, [](auto i) { return exact_value(0, i); });
  const Array sum = group->all_reduce(send);
  EXPECT_TRUE(same_bits(to_vector<double>(*group, sum), to_vector<double>(*group, send)));
}

}  // namespace one_gpu_test
}  // namespace jigsaw
