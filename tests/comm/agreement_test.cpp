#include "comm/agreement.h"

#include <gtest/gtest.h>

#include "comm/ranks.h"

namespace jigsaw {
namespace agreement_test {

TEST(Agreement, AllLearnOfTheLowestRankThatFailed) {
  on_ranks([](Communicator& communicator) {
    EXPECT_EQ(first_failure(communicator, [] {}), "");
    const std::string failure = first_failure(communicator, [&] {
      if (communicator.rank() >= communicator.size() / 2) fail("rank " + std::to_string(communicator.rank()));
    });
    EXPECT_EQ(failure, "rank " + std::to_string(communicator.size() / 2));
    EXPECT_EQ(first_failure(communicator, [] { fail(""); }), "unknown error");
  });
}

}  // namespace agreement_test
}  // namespace jigsaw
