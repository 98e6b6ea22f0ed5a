// When a rank has made no progress for too long, on a clock that the test turns.
#include "comm/patience.h"

#include <gtest/gtest.h>

namespace jigsaw {
namespace patience_test {

using std::chrono::seconds;

class PatienceTest : public ::testing::Test {
 protected:
  /// Looks so many seconds later.
  Patience::Verdict after(int later, std::uint64_t rank, std::int64_t job = 0) {
    now_ += seconds(later);
    return patience_.look({now_, rank, job});
  }

  std::chrono::steady_clock::time_point now_;
  Patience patience_{seconds(100), now_};
};

TEST_F(PatienceTest, EndsWhenNothingHappens) {
  EXPECT_FALSE(after(40, 0).spent);
  EXPECT_FALSE(after(40, 0).spent);
  EXPECT_TRUE(after(20, 0).spent);
  EXPECT_TRUE(after(1, 0).spent);
}

TEST_F(PatienceTest, UnitsThatAreShortMayGoOnForAnyTime) {
  for (std::uint64_t unit = 1; unit <= 1000; ++unit) EXPECT_FALSE(after(45, unit).spent);
  EXPECT_FALSE(after(45, 1000).spent);
  EXPECT_FALSE(after(45, 1000).spent);
  EXPECT_TRUE(after(45, 1000).spent);
}

TEST_F(PatienceTest, ARankThatWaitsForASlowOneHasNoneToFear) {
  for (std::int64_t stamp = 1; stamp <= 1000; ++stamp) {
    const Patience::Verdict verdict = after(45, 7, stamp);
    EXPECT_FALSE(verdict.spent);
    EXPECT_TRUE(verdict.job_progressed);
    EXPECT_EQ(verdict.rank_progressed, stamp == 1);
  }
  EXPECT_FALSE(after(50, 7, 1000).spent);
  EXPECT_TRUE(after(50, 7, 1000).spent);
}

/// The first rank to end a job takes the stamp away, of which the others must not think that it goes on.
TEST_F(PatienceTest, AStampThatGoesIsNoProgress) {
  after(50, 0, 1);
  EXPECT_FALSE(after(50, 0, 1).spent);
  const Patience::Verdict verdict = after(50, 0);
  EXPECT_FALSE(verdict.job_progressed);
  EXPECT_TRUE(verdict.spent);
}

TEST_F(PatienceTest, ProgressAfterTheEndIsHeeded) {
  after(50, 0);
  EXPECT_TRUE(after(50, 0).spent);
  EXPECT_FALSE(after(1, 1).spent);
}

TEST_F(PatienceTest, TimeInWhichTheProcessStoodStillDoesNotCount) {
  EXPECT_FALSE(after(50, 0).spent);
  EXPECT_FALSE(after(10000, 0).spent);
  EXPECT_FALSE(after(50, 0).spent);
  EXPECT_TRUE(after(50, 0).spent);
}

}  // namespace patience_test
}  // namespace jigsaw
