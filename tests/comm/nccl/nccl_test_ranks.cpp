// Tests that are linked with this run their ranks on devices of the fake CUDA runtime, one each, with CUDA's
// kernels, and NCCL's communicator over the fake NCCL between them. With JIGSAW_TEST_RANKS_PER_NODE=2 two of
// them share a node each, and all pieces go in two levels.
#include <gtest/gtest.h>

#include <cstdlib>

#include "kernels/cuda_context.h"
#include "nccl/nccl_communicator.h"
#include "support/fake_cuda/fake_cuda.h"
#include "support/fake_nccl/fake_nccl.h"
#include "support/test_ranks.h"

namespace jigsaw {
namespace {

NcclOptions options_here() {
  NcclOptions options{.poll_seconds = 0.02};
  const char* const ranks = std::getenv("JIGSAW_TEST_RANKS_PER_NODE");
  if (ranks != nullptr) options.ranks_per_node = std::atoi(ranks), options.two_levels_from = 0;
  return options;
}

void run_on_devices(int ranks, const ThreadOptions& options, const testing::RankBody& body) {
  testing::fake_cuda::machine().devices = ranks;
  testing::fake_nccl::start_anew();
  run_ranks(
      ranks, options, [](int device) { return make_cuda_context(device); },
      [&](Communicator& control) {
        const auto world = make_nccl_communicator(
            control.split("world", [](int rank) { return std::make_pair(0, rank); }), options_here());
        testing::cuda_test_runtime() = world->context();
        body(*world);
        testing::cuda_test_runtime().reset();
      });
  EXPECT_EQ(testing::fake_nccl::take_mistakes(), std::vector<std::string>());
}

[[maybe_unused]] const bool set = (testing::other_ranks() = run_on_devices, true);

}  // namespace
}  // namespace jigsaw
