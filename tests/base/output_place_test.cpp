#include "base/output_place.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
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

TEST(OutputPlace, BracesStandAroundPlaceholders) {
  const auto error = [](const std::string& path, const std::vector<std::string>& known) {
    return testing::error_of<ConfigError>([&] { check_placeholders("--output", path, known); });
  };
  const std::vector<std::string> known = {"start", "member"};
  for (const char* path : {"", "fc.nc", "fc_{start}.nc", "{start}/{member}{start}.nc"})
    EXPECT_EQ(error(path, known), "") << path;
  EXPECT_EQ(error("fc_{valid}.nc", known),
            "command line: --output fc_{valid}.nc: {valid} is no placeholder; there is {start}, {member}");
  EXPECT_EQ(error("{start}_{strat}.nc", {"start"}),
            "command line: --output {start}_{strat}.nc: {strat} is no placeholder (did you mean \"start\"?); "
            "there is {start}");
  EXPECT_EQ(error("{start}", {}),
            "command line: --output {start}: {start} is no placeholder; here there are none");
  for (const char* path : {"a{", "a}", "{start", "{{start}}", "}{", "a/{", "{start}}"})
    EXPECT_EQ(error(path, {"start"}),
              concat("command line: --output ", path, ": a brace alone is no placeholder; there is {start}"));
  EXPECT_NE(error("{}", known), "");
}

}  // namespace
}  // namespace jigsaw
