// Of files that all ranks need each is opened by one rank before it is read.
#include "fields/shared_files.h"

#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <cstdarg>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "comm/thread/run_ranks.h"
#include "fields/file_set.h"
#include "io/fixtures.h"
#include "samples/dataset.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace shared_files_test {

/// Which threads have opened which files, while there is one.
class OpenedFiles {
 public:
  OpenedFiles() {
    const std::lock_guard lock(mutex());
    current() = this;
  }
  ~OpenedFiles() {
    const std::lock_guard lock(mutex());
    current() = nullptr;
  }
  OpenedFiles(const OpenedFiles&) = delete;
  OpenedFiles& operator=(const OpenedFiles&) = delete;

  static void note(const char* path) {
    const std::lock_guard lock(mutex());
    if (current() != nullptr) current()->threads_[path].insert(std::this_thread::get_id());
  }
  std::size_t ranks(const std::string& path) {
    const std::lock_guard lock(mutex());
    return threads_[path].size();
  }

 private:
  static std::mutex& mutex() {
    static std::mutex the_mutex;
    return the_mutex;
  }
  static OpenedFiles*& current() {
    static OpenedFiles* opened = nullptr;
    return opened;
  }

  std::map<std::string, std::set<std::thread::id>> threads_;
};

TEST(SharedFiles, EachIsOpenedByOneRank) {
  for (const int ranks : {2, 3}) {
    OpenedFiles opened;
    run_ranks(ranks, [&](Communicator& world) {
      ASSERT_EQ(world.size(), ranks);
      const std::vector<std::string> paths = expand_together({"*.nc"}, fixture(""), world);
      ASSERT_EQ(paths.size(), 5U);
      const FileOpener open = share_files(paths, Dimensions::kByName, External::kRefused, {}, world);
      FileSet files(paths, {}, open);
      files.select({"t2m", {}}, true);
      files.select({"t", 850}, true);
      files.select({"lsm", {}}, false);
      world.barrier();
      for (const std::string& path : paths) EXPECT_EQ(opened.ranks(path), 1U) << path;
      world.barrier();
      // What is read is what one rank reads alone.
      FileSet alone(paths);
      std::vector<double> found(56), wanted(56);
      for (const Field& field : {Field{"t2m", {}}, Field{"t", 850}}) {
        alone.select(field, true);
        ASSERT_EQ(files.times(field), alone.times(field));
        const Time time = files.times(field).back();
        files.read(field, time, Box::whole({7, 8}), found);
        alone.read(field, time, Box::whole({7, 8}), wanted);
        expect_close(found, wanted, 0);
      }
      EXPECT_EQ(files.grid().axes[0].coordinates, alone.grid().axes[0].coordinates);
    });
  }
}

TEST(SharedFiles, ADataSetIsTheSameOnAllRanks) {
  std::map<int, Statistics> found;
  for (const int ranks : {1, 3}) {
    run_ranks(ranks, [&](Communicator& world) {
      ASSERT_EQ(world.size(), ranks);
      const Dataset data(fixture_options(), fixture(""), 1, world);
      if (world.rank() + 1 == ranks) found[ranks] = data.statistics();
    });
  }
  EXPECT_EQ(found.at(1), found.at(3));
}

/// The sentence of the first file that cannot be used, by rank 0, whichever rank looked at it.
TEST(SharedFiles, AWrongFileIsTheSameErrorOnAllRanks) {
  const testing::TemporaryFolder folder;
  const std::string good = fixture("packed.nc"), bad = folder.path() + "/bad.nc",
                    worse = folder.path() + "/worse.nc";
  testing::put_text(bad, "CDF\1");
  testing::put_text(worse, "no such format");
  const std::string alone = message_of<DataError>([&] { open_variables(bad, Dimensions::kByName); });
  std::mutex mutex;
  int refused = 0;
  const auto share = [&](Communicator& world) {
    ASSERT_EQ(world.size(), 3);
    try {
      share_files({good, bad, worse}, Dimensions::kByName, External::kRefused, {}, world);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const AgreedError& error) {
      EXPECT_EQ(error.what(), alone);
      EXPECT_EQ(error.code(), ExitCode::kData);
      EXPECT_EQ(error.speaker(), 0);
      const std::lock_guard lock(mutex);
      ++refused;
    }
  };
  run_ranks(3, share);
  EXPECT_EQ(refused, 3);
}

/// The fixtures as files that nobody changed lately, and a folder for what headers say.
class SharedFilesAgain : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_.path() + "/data");
    for (const auto& entry : std::filesystem::directory_iterator(fixture(""))) {
      if (entry.path().extension() != ".nc") continue;
      paths_.push_back(folder_.path() + "/data/" + entry.path().filename().string());
      std::filesystem::copy_file(entry.path(), paths_.back());
      set_age(paths_.back(), std::chrono::hours(1));
    }
    std::ranges::sort(paths_);
    ASSERT_EQ(paths_.size(), 5U);
  }
  static void set_age(const std::string& path, std::chrono::seconds age) {
    std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - age);
  }
  std::filesystem::path cache() const { return folder_.path() + "/cache"; }

  /// By how many of `ranks` ranks each header is read when they open the files; looks whether what they give
  /// is what a rank reads that knows nothing.
  std::map<std::string, std::size_t> headers_read(int ranks) {
    std::map<std::string, std::size_t> result;
    OpenedFiles opened;
    run_ranks(ranks, [&](Communicator& world) {
      ASSERT_EQ(world.size(), ranks);
      const FileOpener open = share_files(paths_, Dimensions::kByName, External::kRefused, cache(), world);
      FileSet files(paths_, {}, open);
      const Field field{"t2m", {}};
      files.select(field, true);
      world.barrier();
      if (world.rank() == 0) {
        for (const std::string& path : paths_) result[path] = opened.ranks(path);
      }
      world.barrier();
      FileSet alone(paths_);
      alone.select(field, true);
      ASSERT_EQ(files.times(field), alone.times(field));
      const Time time = files.times(field).back();
      std::vector<double> found(56), wanted(56);
      files.read(field, time, Box::whole({7, 8}), found);
      alone.read(field, time, Box::whole({7, 8}), wanted);
      expect_close(found, wanted, 0);
    });
    return result;
  }
  std::map<std::string, std::size_t> each(std::size_t times) const {
    std::map<std::string, std::size_t> result;
    for (const std::string& path : paths_) result[path] = times;
    return result;
  }

  testing::TemporaryFolder folder_;
  std::vector<std::string> paths_;
};

TEST_F(SharedFilesAgain, HeadersThatARunBeforeReadAreNotReadAgain) {
  EXPECT_EQ(headers_read(2), each(1));
  for (const int ranks : {1, 2, 3}) EXPECT_EQ(headers_read(ranks), each(0)) << ranks;
}

TEST_F(SharedFilesAgain, AFileThatChangedIsReadAgain) {
  EXPECT_EQ(headers_read(1), each(1));
  set_age(paths_[2], std::chrono::minutes(30));
  auto once = each(0);
  once[paths_[2]] = 1;
  EXPECT_EQ(headers_read(2), once);
  EXPECT_EQ(headers_read(2), each(0));
  // What was written just now may be written again without another time stamp.
  set_age(paths_[2], std::chrono::seconds(-60));
  EXPECT_EQ(headers_read(1), once);
  EXPECT_EQ(headers_read(1), once);
}

TEST_F(SharedFilesAgain, AFileMoreIsTheOnlyOneThatIsRead) {
  const std::string last = paths_.back();
  paths_.pop_back();
  EXPECT_EQ(headers_read(2), each(1));
  paths_.push_back(last);
  auto once = each(0);
  once[last] = 1;
  EXPECT_EQ(headers_read(2), once);
  EXPECT_EQ(headers_read(1), each(0));
}

TEST_F(SharedFilesAgain, WhatIsKeptAndDamagedIsReadAgain) {
  EXPECT_EQ(headers_read(1), each(1));
  const std::string index = std::filesystem::directory_iterator(cache())->path().string();
  std::string text = read_text(index, 1 << 20);
  text[text.size() / 2] ^= 1;
  testing::put_text(index, text);
  EXPECT_EQ(headers_read(1), each(1));
  EXPECT_EQ(headers_read(1), each(0));
  testing::put_text(index, "");
  EXPECT_EQ(headers_read(1), each(1));
}

/// What was described under a name that counts from one folder is not looked for from another.
TEST_F(SharedFilesAgain, AFileIsOpenedUnderTheNameThatIsAskedFor) {
  const std::filesystem::path here = std::filesystem::current_path();
  const std::string other = folder_.path() + "/other";
  std::filesystem::create_directories(other + "/data");
  for (const std::string& path : paths_)
    std::filesystem::copy_file(path, other + "/data/" + std::filesystem::path(path).filename().string());
  const auto open_all = [&](const std::vector<std::string>& paths) {
    run_ranks(1, [&](Communicator& world) {
      const FileOpener open = share_files(paths, Dimensions::kByName, External::kRefused, cache(), world);
      for (const std::string& path : paths) EXPECT_EQ(open(path)->path(), path);
    });
  };
  std::vector<std::string> relative;
  for (const std::string& path : paths_)
    relative.push_back("data/" + std::filesystem::path(path).filename().string());
  std::filesystem::current_path(folder_.path());
  open_all(relative);
  std::filesystem::current_path(other);
  open_all(paths_);
  std::filesystem::current_path(here);
}

TEST_F(SharedFilesAgain, ACacheThatCannotBeWrittenIsNoError) {
  testing::put_text(cache().string(), "no folder");
  EXPECT_EQ(headers_read(2), each(1));
  EXPECT_EQ(headers_read(2), each(1));
}

}  // namespace shared_files_test
}  // namespace jigsaw

extern "C" {
int __real_open(const char* path, int flags, ...);

int __wrap_open(const char* path, int flags, ...) {
  mode_t mode = 0;
  if ((flags & O_CREAT) != 0) {
    va_list arguments;
    va_start(arguments, flags);
    mode = va_arg(arguments, mode_t);
    va_end(arguments);
  }
  jigsaw::shared_files_test::OpenedFiles::note(path);
  return __real_open(path, flags, mode);
}
}
