#include "base/next_line.h"

#include <gtest/gtest.h>

#include <sstream>
#include <vector>

namespace jigsaw {
namespace {

TEST(NextLine, IsThatOfGetline) {
  for (const char* all : {"", "a", "a\n", "\n", "a\n\nb", "a\nb\n\n", "a\r\nb"}) {
    std::istringstream ours(all), wanted(all);
    std::string line, other;
    while (true) {
      const bool found = next_line(ours, line), there = static_cast<bool>(std::getline(wanted, other));
      ASSERT_EQ(found, there) << all;
      EXPECT_EQ(ours.eof(), wanted.eof()) << all;
      if (!found) break;
      EXPECT_EQ(line, other) << all;
    }
  }
}

TEST(NextLine, NothingIsHeldOfOneThatIsTooLong) {
  std::istringstream text("one\n" + std::string(1000, 'x') + "\ntwo\n" + std::string(1000, 'y'));
  std::vector<std::string> found;
  for (std::string line; next_line(text, line, 10);) {
    found.push_back(line);
    EXPECT_LT(line.capacity(), 100U);
  }
  EXPECT_EQ(found, (std::vector<std::string>{"one", "", "two", ""}));
}

}  // namespace
}  // namespace jigsaw
