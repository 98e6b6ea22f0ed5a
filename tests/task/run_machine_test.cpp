// What a run's ranks do: given, kept by an earlier run, or measured; the same on all ranks.
#include "task/run_machine.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <mutex>

#include "base/file.h"
#include "comm/thread/run_ranks.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace run_machine_test {

class RunMachine : public ::testing::Test {
 protected:
  /// What each rank of a mesh takes.
  std::vector<Machine> machines(int domain, const std::optional<MachineOptions>& given = {},
                                DType products = DType::kFloat32) {
    std::vector<Machine> all;
    std::mutex mutex;
    run_ranks(
        2 * domain, {}, [](int number) { return Context::make_host(Backend::kCpu, 1 + number % 2); },
        [&](Communicator& world) {
          Mesh mesh(world, 1, {domain, 1}, 2);
          const Rank rank{world.context(), mesh};
          const Machine machine = machine_of_run(given, rank, products, 1, path_);
          EXPECT_EQ(world.traffic().total_bytes(), 0);
          EXPECT_EQ(world.context().tally().flops, 0);
          const std::lock_guard lock(mutex);
          all.push_back(machine);
        });
    for (const Machine& one : all) EXPECT_EQ(one, all.front());
    return all;
  }

  testing::TemporaryFolder folder_;
  std::string path_ = folder_.path() + "/machine.json";
};

TEST_F(RunMachine, IsMeasuredOnceForAMesh) {
  const Machine measured = machines(2)[0];
  EXPECT_GT(measured.flops_per_second, 0);
  EXPECT_GT(measured.memory_bytes_per_second, 0);
  for (const int axis : {1, 3}) EXPECT_GT(measured.links[static_cast<std::size_t>(axis)].bytes_per_second, 0);
  // To the digits that JSON keeps, which are all.
  EXPECT_EQ(machines(2)[0].flops_per_second, measured.flops_per_second);
  EXPECT_EQ(machines(2)[0].links[1], measured.links[1]);
  const std::string kept = read_text(path_, 1 << 16);
  machines(1);
  EXPECT_NE(read_text(path_, 1 << 16), kept) << "that of another mesh was taken";
  EXPECT_GT(machines(1, {}, DType::kBfloat16)[0].flops_per_second, 0);
  EXPECT_NE(read_text(path_, 1 << 16).find("\"products\": \"bf16\""), std::string::npos)
      << "that of float32 was taken";
}

TEST_F(RunMachine, AFileThatSaysSomethingElseIsMeasuredAgain) {
  for (const char* text : {"", "{}", "{\"mesh\": [1,1,1,2], \"threads\": 1, \"machine\": {\"links\": []}}"}) {
    std::ofstream(path_) << text;
    EXPECT_GT(machines(1)[0].flops_per_second, 0);
  }
}

TEST_F(RunMachine, IsTakenAsGiven) {
  MachineOptions given{1e11, 1e10, {{2e9, 1e-5}}};
  EXPECT_EQ(machines(1, given)[0].links[3], (Link{2e9, 1e-5}));
  EXPECT_FALSE(std::filesystem::exists(path_));
  given.links.push_back({1e9, 1e-5});
  EXPECT_THROW(machines(1, given), ConfigError);
}

}  // namespace run_machine_test
}  // namespace jigsaw
