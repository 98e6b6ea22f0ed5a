#include "comm/nccl/ranks_nccl.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

#include "comm/ranks.h"
#include "comm/thread/run_ranks.h"
#include "kernels/cuda_context.h"
#include "support/fake_cuda/fake_cuda.h"
#include "support/fake_nccl/fake_nccl.h"

namespace jigsaw {

void run_nccl_ranks(int ranks, const NcclOptions& options, const std::function<void(Communicator&)>& body) {
  testing::fake_cuda::machine().devices = ranks;
  testing::fake_nccl::start_anew();
  run_ranks(
      ranks, {}, [](int device) { return make_cuda_context(device); },
      [&](Communicator& control) {
        const auto comm = make_nccl_communicator(
            control.split("world", [](int rank) { return std::make_pair(0, rank); }), options);
        body(*comm);
      });
}

/// JIGSAW_TEST_TRANSPORT=thread: the communicator of threads instead, with arrays on one device.
void on_ranks(const std::function<void(Communicator&)>& body) {
  const char* const transport = std::getenv("JIGSAW_TEST_TRANSPORT");
  const bool threads = transport != nullptr && std::string_view(transport) == "thread";
  for (const int ranks : {1, 2, 3, 5, 8}) {
    SCOPED_TRACE(ranks);
    if (threads) {
      testing::fake_cuda::machine().devices = 1;
      run_ranks(
          ranks, {}, [](int) { return make_cuda_context(0); }, body);
      continue;
    }
    run_nccl_ranks(ranks, {.poll_seconds = 0.02}, body);
    EXPECT_EQ(testing::fake_nccl::take_mistakes(), std::vector<std::string>());
  }
}

}  // namespace jigsaw
