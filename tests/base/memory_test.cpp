#include "base/memory.h"

#include <limits>

#include "support/temporary_folder.h"

namespace jigsaw {
namespace {

using testing::put_text;
using testing::TemporaryFolder;

constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

TEST(Memory, OfAControlGroupIsTheLeastOfAllAboveIt) {
  const TemporaryFolder root;
  std::filesystem::create_directories(root.path() + "/job/step");
  EXPECT_EQ(control_group_limit("0::/job/step\n", root.path()), kNone);
  put_text(root.path() + "/job/step/memory.max", "max\n");
  put_text(root.path() + "/job/memory.max", "4096\n");
  EXPECT_EQ(control_group_limit("0::/job/step\n", root.path()), 4096);
  put_text(root.path() + "/job/step/memory.max", "1000\n");
  EXPECT_EQ(control_group_limit("0::/job/step\n", root.path()), 1000);
  EXPECT_EQ(control_group_limit("0::/other\n", root.path()), kNone);
  EXPECT_EQ(control_group_limit("nonsense", root.path()), kNone);
}

TEST(Memory, OfTheFirstVersionStandsInAFolderOfItsOwn) {
  const TemporaryFolder root;
  std::filesystem::create_directories(root.path() + "/memory/slurm");
  put_text(root.path() + "/memory/slurm/memory.limit_in_bytes", "2048\n");
  EXPECT_EQ(control_group_limit("3:cpu:/slurm\n9:memory:/slurm\n", root.path()), 2048);
}

TEST(Memory, IsThere) {
  EXPECT_GT(memory_limit(), 1 << 20);
}

}  // namespace
}  // namespace jigsaw
