#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/disk.h"
#include "base/text.h"
#include "support/error_of.h"
#include "support/small_disk.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace {

namespace fs = std::filesystem;
using testing::SmallDisk;
using testing::TemporaryFolder;

constexpr auto error_of = testing::error_of<FileError>;

TEST(File, WritesAndReadsAtOffsets) {
  const TemporaryFolder folder;
  File file(folder.path() + "/x", O_RDWR | O_CREAT);
  file.write(std::as_bytes(std::span("world", 5)), 6);
  file.write(std::as_bytes(std::span("hello ", 6)), 0);
  EXPECT_EQ(file.size(), 11);
  std::string text(5, '\0');
  file.read(std::as_writable_bytes(std::span(text)), 6);
  EXPECT_EQ(text, "world");
  EXPECT_EQ(error_of([&] { file.read(std::as_writable_bytes(std::span(text)), 8); }),
            "cannot read " + file.path() + ": it ends after 11 bytes");
  file.reserve(100);
  EXPECT_EQ(file.size(), 100);
}

/// Another number of the same length, and the time of change set back, as archives of one date do.
TEST(File, IdentityIsAnotherOneWhateverTimeIsSet) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/x";
  const timespec then[2] = {{1'600'000'000, 0}, {1'600'000'000, 0}};
  const auto write = [&](const char* text) {
    File(path, O_RDWR | O_CREAT).write(std::as_bytes(std::span(text, 5)), 0);
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), then, 0), 0);
  };
  write("12345");
  const std::string before = file_identity(path);
  EXPECT_EQ(file_identity(path), before);
  do {  // until the clock of the file system has moved
    write("12346");
  } while (file_identity(path) == before);
  EXPECT_EQ(file_state(path).seconds, 1'600'000'000);
  EXPECT_NE(file_identity(path), before);
}

TEST(File, ErrorsNameThePathAndTheReason) {
  EXPECT_EQ(error_of([] { File("/nowhere/x", O_RDONLY); }),
            "cannot open /nowhere/x: No such file or directory");
  EXPECT_EQ(error_of([] { read_text("/", 10000); }), "cannot read /: Is a directory");
  EXPECT_EQ(error_of([] { write_text_atomically("/nowhere/x", "a"); }),
            "cannot open " + private_name("/nowhere/x") + ": No such file or directory");
}

TEST(File, TextIsReplacedWholeOrNotAtAll) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/x";
  write_text_atomically(path, "old");
  {
    const SmallDisk disk(100);
    EXPECT_EQ(error_of([&] { write_text_atomically(path, std::string(200, 'n')); }),
              "cannot write " + private_name(path) + ": File too large");
  }
  EXPECT_EQ(read_text(path, 100), "old");
  EXPECT_FALSE(fs::exists(private_name(path)));
  write_text_atomically(path, "new");
  EXPECT_EQ(read_text(path, 100), "new");
  EXPECT_NE(error_of([&] { read_text(path, 2); }).find("longer than 2 B"), std::string::npos);
}

/// Whatever it was, and whoever tells it: one exit code. What is no matter of the disk becomes the caller's.
TEST(File, OfADiskThatTakesNothingMoreTheErrorStaysItsOwn) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/x";
  const auto code_of = [](const std::function<void()>& work) {
    try {
      try {
        work();
      } catch (const FileError& error) {
        refuse_output<ConfigError>(error, concat("output: ", error.what()));
      }
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find("output: "), 0U);
      return error.code();
    }
    return ExitCode::kDone;
  };
  const SmallDisk disk(100);
  EXPECT_EQ(code_of([&] { write_text_atomically(path, std::string(200, 'n')); }), ExitCode::kCheckpoint);
  EXPECT_EQ(code_of([&] { File(path, O_RDWR | O_CREAT).reserve(200); }), ExitCode::kCheckpoint);
  EXPECT_EQ(code_of([&] { File(path, O_RDWR).truncate(200); }), ExitCode::kCheckpoint);
  EXPECT_EQ(code_of([&] { write_text_atomically(folder.path() + "/none/x", "n"); }), ExitCode::kConfig);
  EXPECT_EQ(code_of([&] { read_text(folder.path() + "/none", 10); }), ExitCode::kConfig);
  for (const int error : {ENOSPC, EDQUOT, EROFS, EIO, ESTALE}) {
    EXPECT_THROW(refuse_output<DataError>(error, ""), DiskError) << error;
    EXPECT_THROW(refuse_output<DataError>(std::error_code(error, std::generic_category()), ""), DiskError);
  }
  for (const int error : {0, EACCES, ENOENT, ENOTDIR})
    EXPECT_THROW(refuse_output<DataError>(error, ""), DataError) << error;
}

TEST(File, AFullDiskIsToldWithItsRoom) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/not/there/x", said = reason_of(ENOSPC, path, 3 << 20);
  EXPECT_TRUE(said.starts_with("No space left on device: the file system of " + folder.path() + " has "))
      << said;
  EXPECT_TRUE(said.ends_with(" free, and 3.0 MiB are needed")) << said;
  EXPECT_EQ(reason_of(EDQUOT, path), "Disk quota exceeded");
}

TEST(File, OnlyRegularFilesAreOpenedAndNothingIsWaitedFor) {
  const TemporaryFolder folder;
  const std::string pipe = folder.path() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string refused = "cannot open " + pipe + ": it is a pipe, not a regular file";
  EXPECT_EQ(error_of([&] { read_text(pipe, 100); }), refused);
  EXPECT_EQ(error_of([&] { File(pipe, O_RDWR | O_CREAT); }), refused);
  EXPECT_NE(error_of([&] { File(pipe, O_WRONLY); }), "");
  EXPECT_EQ(error_of([] { File("/dev/null", O_RDWR); }),
            "cannot open /dev/null: it is a device, not a regular file");
  EXPECT_EQ(error_of([&] { file_state(pipe); }),
            "cannot read " + pipe + ": it is a pipe, not a regular file");
}

TEST(File, NothingButARegularFileIsReplaced) {
  const TemporaryFolder folder;
  const std::string pipe = folder.path() + "/pipe", path = folder.path() + "/x";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { write_text_atomically(pipe, "a"); }),
            "cannot replace " + pipe + ": it is a pipe, not a regular file");
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_EQ(error_of([] { Replacement("/dev/full"); }),
            "cannot replace /dev/full: it is a device, not a regular file");
  EXPECT_EQ(error_of([&] { Replacement{folder.path()}; }),
            "cannot replace " + folder.path() + ": it is a folder, not a regular file");
  // What has the temporary name is not written through.
  write_text_atomically(folder.path() + "/precious", "kept");
  fs::create_symlink("precious", private_name(path));
  write_text_atomically(path, "new");
  EXPECT_EQ(read_text(path, 10), "new");
  EXPECT_EQ(read_text(folder.path() + "/precious", 10), "kept");
}

/// Of a process that has ended.
pid_t ended_process() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  return child;
}

TEST(File, PrivateNamesOfOtherProcessesAreFoundAndThoseOfDeadOnesGo) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/x", own = private_name(path),
                    digits = std::to_string(::getpid());
  ASSERT_TRUE(own.ends_with("-" + digits)) << own;
  const std::string begin = own.substr(0, own.size() - digits.size()),
                    dead = begin + std::to_string(ended_process()),
                    living = begin + std::to_string(::getppid());
  testing::put_text(own, "own");
  EXPECT_EQ(other_writer(path), "");
  testing::put_text(dead, "left");
  testing::put_text(dead + ".raw", "left");
  testing::put_text(begin + "of nobody", "stays");
  testing::put_text(folder.path() + "/y" + dead.substr(path.size()), "of another file");
  EXPECT_EQ(other_writer(path), "");
  EXPECT_FALSE(fs::exists(dead) || fs::exists(dead + ".raw"));
  EXPECT_TRUE(fs::exists(folder.path() + "/y" + dead.substr(path.size())));
  testing::put_text(living, "under way");
  EXPECT_EQ(other_writer(path), "process " + std::to_string(::getppid()));
  remove_left(folder.path());
  EXPECT_FALSE(fs::exists(folder.path() + "/y" + dead.substr(path.size())));
  EXPECT_TRUE(fs::exists(own) && fs::exists(living) && fs::exists(begin + "of nobody"));
  // One that is nearly too long is written, too.
  const std::string long_name = folder.path() + "/" + std::string(250, 'n');
  write_text_atomically(long_name, "whole");
  EXPECT_EQ(read_text(long_name, 10), "whole");
}

TEST(File, ANewNameIsTakenOnlyWhereThereIsNone) {
  const TemporaryFolder folder;
  const std::string from = folder.path() + "/from", to = folder.path() + "/to";
  testing::put_text(from, "new");
  testing::put_text(to, "old");
  EXPECT_FALSE(rename_new(from, to));
  EXPECT_EQ(read_text(to, 10), "old");
  fs::remove(to);
  EXPECT_TRUE(rename_new(from, to));
  EXPECT_EQ(read_text(to, 10), "new");
}

TEST(File, IsToldFromWhatIsNotThereAndFromWhatIsNone) {
  const TemporaryFolder folder;
  const std::string pipe = folder.path() + "/pipe", path = folder.path() + "/x", long_name(5000, 'n');
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(is_file(path));
  write_text_atomically(path, "new");
  EXPECT_TRUE(is_file(path));
  EXPECT_FALSE(is_file(path + "/below"));
  EXPECT_EQ(error_of([&] { is_file(pipe); }), "cannot read " + pipe + ": it is a pipe, not a regular file");
  EXPECT_EQ(error_of([&] { is_file(folder.path()); }),
            "cannot read " + folder.path() + ": it is a folder, not a regular file");
  EXPECT_EQ(error_of([&] { is_file(long_name); }), "cannot read " + long_name + ": File name too long");
}

TEST(File, MadeAnewItIsNoOther) {
  const TemporaryFolder folder;
  const std::string precious = folder.path() + "/precious", path = folder.path() + "/x";
  write_text_atomically(precious, "kept");
  fs::create_symlink("precious", path);
  EXPECT_EQ(fresh_file(path).size(), 0);
  EXPECT_FALSE(fs::is_symlink(path));
  EXPECT_EQ(read_text(precious, 10), "kept");
  fs::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(fresh_file(path).size(), 0);
  EXPECT_EQ(error_of([&] { fresh_file(folder.path()); }), "cannot open " + folder.path() + ": File exists");
}

TEST(File, ALinkIsNotFollowedWhereItMustNotBe) {
  const TemporaryFolder folder;
  write_text_atomically(folder.path() + "/precious", "kept");
  fs::create_symlink("precious", folder.path() + "/lock");
  EXPECT_EQ(error_of([&] { File(folder.path() + "/lock", O_RDWR | O_CREAT | O_NOFOLLOW); }),
            "cannot open " + folder.path() + "/lock: it is a symbolic link");
}

}  // namespace
}  // namespace jigsaw
