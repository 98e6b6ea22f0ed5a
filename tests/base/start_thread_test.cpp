#include "base/start_thread.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <future>

#include "support/error_of.h"

namespace jigsaw {
namespace {

TEST(StartThread, GivesWhatWasStartedAndSaysWhatCannotBe) {
  std::future<int> future =
      start_thread("to add", [] { return std::async(std::launch::async, [] { return 2; }); });
  EXPECT_EQ(future.get(), 2);
  EXPECT_EQ(
      testing::error_of([] {
        start_thread("to add", [] {
          throw std::system_error(EAGAIN, std::generic_category(), "what a standard library adds");
        });
      }),
      "cannot start a thread (to add): Resource temporarily unavailable; look at the limits of processes "
      "and memory, ulimit -u and -v");
}

}  // namespace
}  // namespace jigsaw
