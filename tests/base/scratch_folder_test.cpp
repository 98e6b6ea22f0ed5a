#include "base/scratch_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>

namespace jigsaw {
namespace {

namespace fs = std::filesystem;

TEST(ScratchFolder, IsItsOwnAndGoesWithAllInIt) {
  std::optional<ScratchFolder> under(std::in_place, "under");
  const std::string inner = under->path() + "/a/b";
  std::optional<ScratchFolder> one(std::in_place, "name", inner), other(std::in_place, "name", inner);
  EXPECT_NE(one->path(), other->path());
  EXPECT_EQ(fs::path(one->path()).parent_path(), fs::path(inner));
  std::ofstream(one->path() + "/file") << "text";
  const std::string path = one->path();
  one.reset();
  EXPECT_FALSE(fs::exists(path));
  EXPECT_TRUE(fs::is_directory(other->path()));
  std::ofstream(under->path() + "/file") << "text";
  EXPECT_EQ(ScratchFolder("name", under->path() + "/file").path(), "") << "a file is no folder";
  under.reset();
  EXPECT_FALSE(fs::exists(fs::path(inner).parent_path()));
}

}  // namespace
}  // namespace jigsaw
