// What is done while a call does not come back.
#include "base/overdue.h"

#include <gtest/gtest.h>

#include <future>
#include <vector>

namespace jigsaw {
namespace {

TEST(Overdue, StepsAreDoneInOrder) {
  std::vector<int> done;
  std::promise<void> last;
  const Overdue overdue(
      {{0, [&] { done.push_back(1); }}, {0.001, [&] { done.push_back(2); }}, {0.002, [&] {
                                                                                done.push_back(3);
                                                                                last.set_value();
                                                                              }}});
  last.get_future().wait();
  EXPECT_EQ(done, (std::vector<int>{1, 2, 3}));
}

/// What is due in a day is not done, and not waited for.
TEST(Overdue, NothingIsDoneForACallThatCameBack) {
  constexpr double kDay = 86400;
  bool done = false;
  {
    const Overdue overdue({{kDay, [&] { done = true; }}, {2 * kDay, [&] { done = true; }}});
  }
  EXPECT_FALSE(done);
}

}  // namespace
}  // namespace jigsaw
