#include "base/output_place.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "support/error_of.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace {

namespace fs = std::filesystem;

TEST(OutputPlace, FilesOfTheSameKindAloneAreReplaced) {
  const testing::TemporaryFolder folder;
  const std::string like = folder.path() + "/like", other = folder.path() + "/other",
                    link = folder.path() + "/link";
  write_text_atomically(like, "ours, and more");
  write_text_atomically(other, "our");
  fs::create_symlink(other, link);
  const auto error = [](const std::string& path) {
    return testing::error_of<ConfigError>([&] {
      check_output_place("--trace", path, "is no trace",
                         [](const std::string& file) { return begins_with(file, "ours"); });
    });
  };
  EXPECT_EQ(error(like), "");
  EXPECT_EQ(error(folder.path() + "/absent"), "");
  EXPECT_EQ(error("/nowhere/x"), "");
  EXPECT_EQ(error(folder.path()), "") << "what writes there refuses folders";
  EXPECT_EQ(error(link), "") << "the link is replaced, and not what it leads to";
  EXPECT_EQ(error(other),
            "command line: --trace " + other +
                " is there already and is no trace; name another file, or remove that one first");
}

}  // namespace
}  // namespace jigsaw
