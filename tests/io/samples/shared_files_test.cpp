// Of files that all ranks need each is opened by one rank before it is read.
#include "samples/shared_files.h"

#include <fcntl.h>

#include <cstdarg>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "comm/thread/run_ranks.h"
#include "io/fixtures.h"
#include "samples/dataset.h"
#include "samples/file_set.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace {

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

}  // namespace
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
  jigsaw::OpenedFiles::note(path);
  return __real_open(path, flags, mode);
}
}
