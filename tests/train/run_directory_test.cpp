#include "train/run_directory.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <thread>

#include "comm/self/self.h"
#include "comm/thread/run_ranks.h"
#include "support/error_of.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace run_directory_test {

namespace fs = std::filesystem;
using testing::put_text;
using testing::TemporaryFolder;

constexpr auto error_of = testing::error_of<Error>;

class RunDirectoryTest : public ::testing::Test {
 protected:
  RunDirectory open(const std::string& path) { return {path, *self_, log_}; }

  TemporaryFolder temporary_;
  std::string path_ = temporary_.path() + "/runs/a";
  Context context_ = Context::make_host(Backend::kReference, 1);
  std::unique_ptr<Communicator> self_ = make_self_communicator(context_);
  Log log_{true};
};

TEST_F(RunDirectoryTest, TheConfigurationIsWrittenWithVersions) {
  const Json config = parse_json(R"({"name": "a", "seed": 18446744073709551615, "rate": 0.1})", "test");
  {
    RunDirectory directory = open(path_);
    directory.write_config(config, {{"jigsaw-train", "0.1.0"}}, "jigsaw-train --config a.json");
  }
  EXPECT_EQ(load_config(path_ + "/config.json").dump(),
            R"({"name":"a","seed":18446744073709551615,"rate":0.1,"versions":{"jigsaw-train":"0.1.0"},)"
            R"("command_line":"jigsaw-train --config a.json"})");
}

TEST_F(RunDirectoryTest, ASecondRunIsRefusedUntilTheFirstIsGone) {
  {
    const RunDirectory first = open(path_);
    char host[256] = "";
    ASSERT_EQ(::gethostname(host, sizeof host), 0);
    EXPECT_EQ(error_of([&] { open(path_); }), "output: the run directory \"" + path_ +
                                                  "\" is in use by another run (process " +
                                                  std::to_string(::getpid()) + " on " + host +
                                                  "); wait for its end or choose another folder");
  }
  EXPECT_EQ(error_of([&] { open(path_); }), "");
}

/// What SLURM has started again waits for the start before.
TEST_F(RunDirectoryTest, AStartAgainWaitsForTheOneBefore) {
  std::optional<RunDirectory> first;
  first.emplace(path_, *self_, log_);
  ASSERT_EQ(::setenv("SLURM_RESTART_COUNT", "1", 1), 0);
  std::thread ends([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    first.reset();
  });
  EXPECT_EQ(error_of([&] { open(path_); }), "");
  ends.join();
  ::unsetenv("SLURM_RESTART_COUNT");
}

TEST_F(RunDirectoryTest, TheLockDiesWithItsProcess) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const RunDirectory held = open(path_);
    if (::write(ready[1], "x", 1) == 1) ::pause();
    ::_exit(1);
  }
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_NE(error_of([&] { open(path_); }), "");
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(error_of([&] { open(path_); }), "");
}

TEST_F(RunDirectoryTest, ACopyIsNotLocked) {
  const RunDirectory first = open(path_);
  fs::copy(path_, path_ + "_copy", fs::copy_options::recursive);
  EXPECT_EQ(error_of([&] { open(path_ + "_copy"); }), "");
}

TEST_F(RunDirectoryTest, FoldersThatCannotBeMadeNameTheKey) {
  put_text(temporary_.path() + "/file", "");
  EXPECT_EQ(
      error_of([&] { open(temporary_.path() + "/file/run"); }),
      "output: cannot create the run directory \"" + temporary_.path() + "/file/run\": Not a directory");
  EXPECT_EQ(error_of([&] { open(temporary_.path() + "/file"); }),
            "output: cannot create the run directory \"" + temporary_.path() + "/file\": Not a directory");
  EXPECT_NE(error_of([&] { open("/dev/null/run"); }), "");
}

/// A run would replace their config.json, or strew its files among others.
TEST_F(RunDirectoryTest, FoldersOfOthersAreRefused) {
  const auto refusal = [](const std::string& path, const std::string& why, const std::string& own) {
    return "output: the folder \"" + path + "\" " + why + "; name a folder of the run's own, such as \"" +
           own + "\"";
  };
  const auto expect_refusal = [&](const std::string& path, const std::string& message) {
    EXPECT_EQ(error_of([&] { open(path); }), message);
    EXPECT_EQ(error_of([&] { RunDirectory::check(path); }), message);
    EXPECT_FALSE(fs::exists(path + "/lock"));
  };
  const std::string theirs = temporary_.path() + "/theirs",
                    config = "holds a config.json that no run wrote, and a run would replace it",
                    around = "lies above the working folder, and no run is in it";
  fs::create_directory(theirs);
  for (const char* text : {"{\"name\": \"mine\"}", "// not yet", "[]"}) {
    put_text(theirs + "/config.json", text);
    expect_refusal(theirs, refusal(theirs, config, theirs + "/run"));
  }
  const fs::path before = fs::current_path();
  fs::current_path(theirs);
  fs::remove("config.json");
  put_text("train-4711.log", "");
  put_text("mine.json", "");
  EXPECT_EQ(error_of([&] { RunDirectory::check("."); }), "") << "a folder for each experiment";
  expect_refusal("..", refusal("..", around, "../run"));
  const std::string root = error_of([&] { RunDirectory::check("/"); });
  EXPECT_NE(root.find(::access("/", W_OK) == 0 ? around : "cannot be made or written"), std::string::npos)
      << root;
  fs::create_directory("../checkpoints");
  EXPECT_EQ(error_of([&] { RunDirectory::check(".."); }), "") << "what was saved of a run";
  fs::remove("../checkpoints");
  EXPECT_EQ(error_of([&] { open("run"); }), "");
  // Files apart from the working folder do no harm, nor does a run's own folder that a shell stands in.
  put_text("run/log-4711.txt", "");
  fs::current_path("run");
  EXPECT_EQ(error_of([&] { open("."); }), "");
  fs::current_path(before);
  EXPECT_EQ(error_of([&] { open(theirs); }), "");
}

TEST_F(RunDirectoryTest, AllRanksFailAlike) {
  const RunDirectory held = open(path_);
  run_ranks(3, [&](Communicator& communicator) {
    Log log(communicator.rank() == 0);
    EXPECT_NE(error_of([&] { RunDirectory(path_, communicator, log); }), "");
    RunDirectory other(path_ + "_b", communicator, log);
    other.write_config({{"seed", 7}}, Json::object(), "x");
    EXPECT_EQ(load_config(other.config_path()).at("seed"), 7);
  });
}

TEST(RunDirectory, KnowsWhereItIsAndLocksItselfAnew) {
  const TemporaryFolder folder;
  Context context = Context::make_host(Backend::kReference, 1);
  const auto self = make_self_communicator(context);
  Log log(true);
  const std::string path = folder.path() + "/run", elsewhere = folder.path() + "/elsewhere";
  RunDirectory directory(path, *self, log);
  EXPECT_EQ(directory.gone(log), "");
  fs::remove(path + "/lock");
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(directory.gone(log), "");
  EXPECT_FALSE(fs::exists(path + "/lock")) << "all of it may be going";
  EXPECT_EQ(directory.gone(log), "");
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("/lock was removed during the run"),
            std::string::npos);
  EXPECT_NE(error_of([&] { RunDirectory(path, *self, log); }).find("is in use by another run"),
            std::string::npos);
  fs::rename(path, elsewhere);
  const std::string moved =
      "was moved while the run wrote there; its files are now in " + fs::canonical(elsewhere).string();
  EXPECT_NE(directory.gone(log).find(moved), std::string::npos) << directory.gone(log);
  EXPECT_FALSE(fs::exists(path));
  fs::create_directory(path);
  put_text(path + "/lock", "");
  EXPECT_NE(directory.gone(log).find(moved), std::string::npos);
  fs::remove_all(path);
  fs::rename(elsewhere, path);
  EXPECT_EQ(directory.gone(log), "");
  fs::remove(path + "/lock");
  put_text(path + "/lock", "");
  EXPECT_NE(directory.gone(log).find("was replaced, and another run may write there"), std::string::npos);
  fs::remove_all(path);
  EXPECT_NE(directory.gone(log).find("was removed while the run wrote there"), std::string::npos);
}

TEST(RunDirectory, IsCheckedWithoutBeingMade) {
  const TemporaryFolder folder;
  RunDirectory::check(folder.path() + "/deep/er/run");
  RunDirectory::check(folder.path());
  EXPECT_FALSE(fs::exists(folder.path() + "/deep"));
  put_text(folder.path() + "/file", "");
  EXPECT_NE(error_of([&] { RunDirectory::check(folder.path() + "/file/run"); }).find("file is no folder"),
            std::string::npos);
  EXPECT_EQ(error_of([&] { RunDirectory::check(folder.path() + "/file"); }).find("output: "), 0U);
}

}  // namespace run_directory_test
}  // namespace jigsaw
