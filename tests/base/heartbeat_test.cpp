// Beats of the rank that a thread works for; and files that beat.
#include "base/heartbeat.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/line_file.h"
#include "base/log.h"
#include "support/small_disk.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace {

TEST(Heartbeat, CountsForTheRankThatAThreadWorksFor) {
  const auto first = std::make_shared<Heartbeat>(), second = std::make_shared<Heartbeat>();
  beat();  // for nobody
  EXPECT_EQ(current_heartbeat(), nullptr);
  {
    const WorksFor one(first);
    beat();
    {
      const WorksFor two(second);
      beat();
      beat();
    }
    EXPECT_EQ(current_heartbeat(), first);
    std::thread stranger([] { beat(); });
    stranger.join();
    std::thread helper([heartbeat = current_heartbeat()] {
      const WorksFor rank(heartbeat);
      beat();
    });
    helper.join();
  }
  beat();
  EXPECT_EQ(first->count(), 2U);
  EXPECT_EQ(second->count(), 2U);
}

/// On the slowest disk a file of any size is read, written and synced in units, each of which is progress.
TEST(Heartbeat, LargeFilesBeatOnTheWay) {
  const testing::TemporaryFolder folder;
  const auto heartbeat = std::make_shared<Heartbeat>();
  const WorksFor rank(heartbeat);
  File file(folder.path() + "/large", O_RDWR | O_CREAT);
  std::vector<std::byte> bytes(std::size_t{40} << 20);
  file.write(bytes, 0);
  const std::uint64_t written = heartbeat->count();
  EXPECT_GE(written, 5U);
  file.read(bytes, 0);
  EXPECT_GE(heartbeat->count() - written, 5U);
  const std::uint64_t read = heartbeat->count();
  file.sync();
  EXPECT_GE(heartbeat->count() - read, 1U);
}

TEST(LineFile, GoesOnWhenAFullDiskHasRoomAgain) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/lines";
  LineFile file(path);
  file.append("one\n");
  {
    const testing::SmallDisk disk(6);
    EXPECT_THROW(file.append("two is long\n"), FileError);
    EXPECT_EQ(testing::text_of(path), "one\n");
  }
  file.append("three\n");
  EXPECT_EQ(testing::text_of(path), "one\nthree\n");
}

TEST(Log, GoesOnWhenAFullDiskHasRoomAgain) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/log.txt";
  Log log(true);
  log.open(path);
  log.record(std::string(1000, 'x'));  // what is said on stderr is captured in a file, too
  {
    const testing::SmallDisk disk(1040);
    ::testing::internal::CaptureStderr();
    log.record("meanwhile, a line that does not fit");
    log.record("and another one that does not fit");
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(said.find("jigsaw-train: warning: cannot write "), 0U) << said;
    EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
  }
  log.record("after");
  const std::string text = testing::text_of(path);
  EXPECT_NE(text.find("x\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("meanwhile"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with(" after\n")) << text;
}

}  // namespace
}  // namespace jigsaw
