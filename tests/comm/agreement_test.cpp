#include "comm/agreement.h"

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

#include "comm/from_first.h"
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

/// Runs what must end in an error that all ranks know of.
AgreedError agreed_error(const std::function<void()>& work) {
  try {
    work();
  } catch (const AgreedError& error) {
    return error;
  }
  return {ExitCode::kDone, -1, "no error"};
}

/// With its exit code; the ranks above it failed in another way, those below not at all.
TEST(Agreement, AllThrowTheErrorOfTheLowestRankThatFailed) {
  on_ranks([](Communicator& communicator) {
    const int rank = communicator.rank(), lowest = communicator.size() / 2;
    const AgreedError error = agreed_error([&] {
      together(communicator, [&] {
        if (rank == lowest) throw DataError("no such file");
        if (rank > lowest) throw ConfigError("another");
      });
    });
    EXPECT_EQ(error.code(), ExitCode::kData);
    EXPECT_EQ(error.speaker(), lowest);
    EXPECT_STREQ(error.what(), "no such file");
    // What all know of already passes; what is no error of this project's is one inside of it.
    const AgreedError again = agreed_error([&] { together(communicator, [&] { throw error; }); });
    EXPECT_EQ(again.speaker(), lowest);
    const AgreedError other =
        agreed_error([&] { together(communicator, [] { throw std::out_of_range("beyond"); }); });
    EXPECT_EQ(other.code(), ExitCode::kInternal);
    EXPECT_STREQ(other.what(), "beyond");
    together(communicator, [] {});
  });
}

/// A rank has made a call by itself.
TEST(Agreement, RanksThatMadeUnlikeCallsAreAnError) {
  on_ranks([](Communicator& communicator) {
    const auto own = communicator.split("own", [](int rank) { return std::make_pair(rank, 0); });
    together(communicator, [] {});
    if (communicator.size() == 1) return;
    const AgreedError error = agreed_error([&] {
      together(communicator, [&] {
        if (communicator.rank() == 1) own->barrier();
      });
    });
    EXPECT_EQ(error.code(), ExitCode::kInternal);
    EXPECT_EQ(std::string(error.what()).rfind("the ranks have made different collective calls", 0), 0U)
        << error.what();
  });
}

TEST(FromFirst, Rank0FindsOutForAll) {
  on_ranks([](Communicator& communicator) {
    bool asked = false;
    EXPECT_EQ(from_first(communicator,
                         [&] {
                           asked = true;
                           return "of " + std::to_string(communicator.rank());
                         }),
              "of 0");
    EXPECT_EQ(asked, communicator.rank() == 0);
    const AgreedError error = agreed_error(
        [&] { from_first(communicator, []() -> std::string { throw DataError("no such folder"); }); });
    EXPECT_EQ(error.code(), ExitCode::kData);
    EXPECT_EQ(error.speaker(), 0);
    EXPECT_STREQ(error.what(), "no such folder");
  });
}

}  // namespace agreement_test
}  // namespace jigsaw
