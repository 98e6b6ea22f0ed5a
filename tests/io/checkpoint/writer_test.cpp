#include "checkpoint/writer.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <random>

#include "array/host_view.h"
#include "array/transfer.h"
#include "base/text.h"
#include "checkpoint/size.h"
#include "comm/self/self.h"
#include "comm/thread/run_ranks.h"
#include "io/checkpoint/checkpoint_cases.h"
#include "support/simulated_device/simulated_device.h"
#include "support/small_disk.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace {

namespace fs = std::filesystem;
using testing::case_manifest;
using testing::case_pieces;
using testing::Cut;
using testing::error_of;
using testing::expect_case;
using testing::Names;
using testing::names_in;
using testing::put_text;
using testing::SmallDisk;
using testing::TemporaryFolder;
using testing::text_of;

class Writer : public ::testing::Test {
 protected:
  void save(std::int64_t step, const Retention& retention = {.keep = 3}, std::optional<double> score = {}) {
    CheckpointManifest manifest = case_manifest(step);
    if (score) manifest.score = {"loss", *score};
    save_checkpoint(folder_, manifest, case_pieces(*self_, step, Cut::kRuns), *self_, retention);
  }
  std::optional<FoundCheckpoint> newest() {
    std::vector<std::string> warnings;
    auto found = newest_checkpoint(folder_, *self_, warnings);
    EXPECT_EQ(warnings, Names{});
    return found;
  }
  std::int64_t newest_step() {
    const auto found = newest();
    return found ? found->stored.manifest.step : -1;
  }
  Names names() const { return names_in(folder_); }

  TemporaryFolder temporary_;
  std::string folder_ = temporary_.path() + "/checkpoints";
  Context context_ = Context::make_host(Backend::kReference, 1);
  std::unique_ptr<Communicator> self_ = make_self_communicator(context_);
};

/// The host does not wait, and what changes the pieces comes behind their copies.
TEST(WriterOnDevice, CopiesBesideWhatTheDeviceComputes) {
  const TemporaryFolder folder;
  Context context = testing::SimulatedDevice::make_context(Backend::kReference, 1),
          host = Context::make_host(Backend::kReference, 1);
  const auto& device = static_cast<const testing::SimulatedDevice&>(*context.runtime());
  const auto self = make_self_communicator(context), reader = make_self_communicator(host);
  CheckpointWriter writer(folder.path(), {.keep = 2}, *self);
  for (const std::int64_t step : {1, 2, 3}) {
    auto pieces = case_pieces(*self, step, Cut::kRuns);
    const std::int64_t waits = device.host_waits();
    ASSERT_FALSE(writer.start(case_manifest(step), pieces));
    EXPECT_FALSE(writer.poll());
    EXPECT_EQ(device.host_waits(), waits);
    EXPECT_GT(device.waiting(Stream::kDownload), 0);
    EXPECT_EQ(device.waiting(Stream::kUpload), 0);  // the next batch need not wait for it
    if (step < 3) {
      writer.copied();
      for (CheckpointPiece& piece : pieces) {
        write_values(context, piece.array,
                     std::vector<double>(static_cast<std::size_t>(piece.array.count()), 99.0));
      }
      EXPECT_EQ(device.host_waits(), waits);
    }
    const std::optional<SaveOutcome> outcome = writer.finish();
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->failure, "");
    expect_case(open_checkpoint(outcome->path, *reader), step, *reader, Cut::kLastDim);
  }
}

TEST(WriterRanks, WhatIsSavedIsTheStateWhenItBegan) {
  const TemporaryFolder folder;
  run_ranks(3, [&](Communicator& c) {
    CheckpointWriter writer(folder.path(), {.keep = 2}, c);
    EXPECT_FALSE(writer.poll());
    for (const std::int64_t step : {1, 2, 3}) {
      auto pieces = case_pieces(c, step, Cut::kLastDim);
      ASSERT_FALSE(writer.start(case_manifest(step), pieces));
      for (CheckpointPiece& piece : pieces)
        std::fill_n(HostView<std::byte>(piece.array).data(), piece.array.bytes(), std::byte{99});
      std::optional<SaveOutcome> outcome;
      while (!outcome) outcome = step == 2 ? writer.finish() : writer.poll();
      ASSERT_TRUE(outcome);
      EXPECT_FALSE(writer.busy());
      EXPECT_EQ(outcome->path, concat(folder.path(), "/step_0000000", step));
      EXPECT_EQ(outcome->failure, "");
      expect_case(open_checkpoint(outcome->path, c), step, c, Cut::kRuns);
    }
  });
  EXPECT_EQ(names_in(folder.path()), (Names{"latest", "step_00000002", "step_00000003"}));
  EXPECT_EQ(text_of(folder.path() + "/latest"), "step_00000003");
}

TEST_F(Writer, AWriterThatGoesAwayLeavesNothingHalf) {
  save(1);
  {
    CheckpointWriter writer(folder_, {}, *self_);
    ASSERT_FALSE(writer.start(case_manifest(2), case_pieces(*self_, 2, Cut::kRuns)));
  }
  EXPECT_EQ(names(), (Names{"latest", "step_00000001"}));
}

TEST(WriterRanks, AFullDiskOnOneRankLeavesWhatWasThere) {
  const TemporaryFolder folder;
  const auto save = [&](std::int64_t step, std::int64_t count) {
    run_ranks(2, [&](Communicator& c) {
      auto pieces = case_pieces(c, step, Cut::kRuns);
      const Shape shape{c.rank() == 1 ? count : 1};
      pieces.push_back({concat("large/", c.rank()), shape, Box::whole(shape),
                        Array::zeros(c.context(), shape, DType::kFloat32)});
      save_checkpoint(folder.path(), case_manifest(step), pieces, c, {});
    });
  };
  save(100, 10);
  {
    const SmallDisk disk(200'000);
    const std::string error = error_of([&] { save(200, 100'000); });
    EXPECT_EQ(error, "the checkpoint of step 200 cannot be saved: cannot write " + folder.path() +
                         "/.tmp-step_00000200/rank_0001.h5: File too large");
  }
  EXPECT_EQ(names_in(folder.path()), (Names{"latest", "step_00000100"}));
  save(300, 10);
  EXPECT_EQ(names_in(folder.path()), (Names{"latest", "step_00000300"}));
}

TEST_F(Writer, AFullDiskAtAnyByteLeavesWhatWasThere) {
  save(100);
  for (const rlim_t bytes : {0, 1, 90, 500, 1000, 5000, 18000, 30000}) {
    const SmallDisk disk(bytes);
    EXPECT_NE(error_of([&] { save(200); }), "") << bytes;
    EXPECT_EQ(names(), (Names{"latest", "step_00000100"})) << bytes;
  }
  auto manifest = case_manifest(200);
  manifest.extra["large"] = std::string(300'000, 'x');
  const auto pieces = case_pieces(*self_, 200, Cut::kRuns);
  {
    const SmallDisk disk(200'000);
    EXPECT_EQ(error_of([&] { save_checkpoint(folder_, manifest, pieces, *self_, {}); }),
              "the checkpoint of step 200 cannot be saved: cannot write " + folder_ +
                  private_name("/.tmp-step_00000200/manifest.json") + ": File too large");
  }
  EXPECT_EQ(names(), (Names{"latest", "step_00000100"}));
  EXPECT_EQ(newest_step(), 100);
  save_checkpoint(folder_, manifest, pieces, *self_, {});
  EXPECT_EQ(newest_step(), 200);
}

/// Of few and of many tensors, small and large ones, of which descriptions are most, or nothing.
TEST(WriterRanks, ACheckpointTakesAboutWhatIsSaidBefore) {
  const TemporaryFolder folder;
  std::int64_t step = 0;
  for (const int ranks : {1, 3}) {
    for (const int tensors : {1, 50, 250}) {
      for (const std::int64_t columns : {2, 300}) {
        ++step;
        std::int64_t said = 0;
        run_ranks(ranks, [&](Communicator& c) {
          std::vector<CheckpointPiece> pieces;
          for (const char* kind : {"parameters", "adamw.moment1", "adamw.moment2", "average"}) {
            if (kind == std::string("average") && tensors == 50) continue;
            for (int t = 0; t < tensors; ++t) {
              const Shape shape{7, columns};
              for (const Box& box : testing::case_boxes(shape, Cut::kRuns, c.rank(), ranks))
                pieces.push_back({concat(kind, "/processor.blocks.", t, ".linear.weight"), shape, box,
                                  Array::zeros(c.context(), box.extent, DType::kFloat32)});
            }
          }
          const std::int64_t bytes = checkpoint_bytes(pieces, c);
          if (c.rank() == 0) said = bytes;
          save_checkpoint(folder.path(), case_manifest(step), pieces, c, {});
        });
        std::int64_t taken = 0;
        for (const auto& file : fs::directory_iterator(checkpoint_at(folder.path())))
          taken += static_cast<std::int64_t>(file.file_size());
        const std::string what = concat(ranks, " ranks, ", tensors, " tensors of ", 7 * columns, " elements");
        EXPECT_GE(said, taken) << what;
        EXPECT_LE(said, taken + taken / 5 + 16'384) << what;
      }
    }
  }
}

/// A file system of its own, where mounting is permitted.
class SmallFileSystem {
 public:
  SmallFileSystem(const std::string& path, const char* options) : path_(path) {
    fs::create_directories(path);
    mounted_ = ::mount("tmpfs", path.c_str(), "tmpfs", 0, options) == 0;
  }
  ~SmallFileSystem() {
    if (mounted_) ::umount(path_.c_str());
  }
  SmallFileSystem(const SmallFileSystem&) = delete;
  SmallFileSystem& operator=(const SmallFileSystem&) = delete;
  bool mounted() const { return mounted_; }

 private:
  std::string path_;
  bool mounted_;
};

TEST_F(Writer, AFileSystemThatIsFullIsNoticedBeforeAnythingIsWritten) {
  const SmallFileSystem disk(folder_, "size=3m");
  if (!disk.mounted()) GTEST_SKIP() << "may not mount a tmpfs here";
  const auto large = [&](std::int64_t mebibytes) {
    const Shape shape{mebibytes << 18};
    return std::vector<CheckpointPiece>{
        {"parameters/large", shape, Box::whole(shape), Array::zeros(context_, shape, DType::kFloat32)}};
  };
  save_checkpoint(folder_, case_manifest(1), large(1), *self_, {});
  const std::string error =
      error_of([&] { save_checkpoint(folder_, case_manifest(2), large(2), *self_, {}); });
  EXPECT_NE(
      error.find("step 2 cannot be saved: it needs 2.1 MiB, and the file system of " + folder_ + " has "),
      std::string::npos)
      << error;
  EXPECT_EQ(names(), (Names{"latest", "step_00000001"}));
  {
    // Somebody else takes the space while the run goes on.
    const std::string other = folder_ + "/other";
    put_text(other, std::string(1'500'000, 'x'));
    EXPECT_NE(error_of([&] { save_checkpoint(folder_, case_manifest(2), large(1), *self_, {}); }), "");
    fs::remove(other);
  }
  EXPECT_EQ(names(), (Names{"latest", "step_00000001"}));
  save(3, {.keep = 1});
  EXPECT_EQ(newest_step(), 3);
}

TEST_F(Writer, AFileSystemWithoutRoomForMoreFilesLeavesWhatWasThere) {
  for (int inodes = 6; inodes < 12; ++inodes) {
    const SmallFileSystem disk(folder_, concat("size=30m,nr_inodes=", inodes).c_str());
    if (!disk.mounted()) GTEST_SKIP() << "may not mount a tmpfs here";
    // One checkpoint takes six files and folders with the root; the second may or may not fit.
    const std::string first = error_of([&] { save(1, {.keep = 1}); });
    if (!first.empty()) {
      EXPECT_EQ(newest_step(), -1);
      continue;
    }
    const std::string second = error_of([&] { save(2, {.keep = 1}); });
    EXPECT_EQ(newest_step(), second.empty() ? 2 : 1) << inodes << second;
  }
}

TEST_F(Writer, APathThatIsAFileIsRefused) {
  put_text(folder_, "");
  EXPECT_NE(error_of([&] { save(1); }).find("the checkpoint of step 1 cannot be saved: "), std::string::npos);
  EXPECT_EQ(newest_step(), -1);
}

TEST_F(Writer, TheStepThatExistsIsReplaced) {
  save(7);
  save_checkpoint(folder_, case_manifest(7), case_pieces(*self_, 8, Cut::kRuns), *self_, {});
  EXPECT_EQ(names(), (Names{"latest", "step_00000007"}));
  auto loaded = case_pieces(*self_, 7, Cut::kRuns);
  read_pieces(open_checkpoint(folder_ + "/latest", *self_), loaded, *self_);
  EXPECT_EQ(testing::values_of(loaded[0].array),
            testing::values_of(case_pieces(*self_, 8, Cut::kRuns)[0].array));
}

TEST_F(Writer, TheOneReplacedIsFoundWhileTheNewOneHasNoName) {
  save(7);
  fs::rename(folder_ + "/step_00000007", folder_ + "/step_00000007.old");  // and here the machine died
  ASSERT_EQ(newest_step(), 7);
  save(7);
  EXPECT_EQ(names(), (Names{"latest", "step_00000007"}));
}

TEST_F(Writer, KeepsThoseSavedLast) {
  for (const std::int64_t step : {100, 200, 300, 400}) save(step, {.keep = 2});
  EXPECT_EQ(names(), (Names{"latest", "step_00000300", "step_00000400"}));
  save(50, {.keep = 2});  // the run was taken back
  EXPECT_EQ(names(), (Names{"latest", "step_00000050", "step_00000400"}));
  EXPECT_EQ(newest_step(), 50);
}

TEST_F(Writer, KeepsEveryKthAndTheBest) {
  Retention retention{.keep = 1, .keep_every = 300, .best_metric = "loss"};
  save(100, retention, 3.0);
  save(200, retention, 1.0);
  save(300, retention, 2.0);
  save(400, retention);
  save(500, retention, 1.5);
  EXPECT_EQ(names(), (Names{"best", "latest", "step_00000200", "step_00000300", "step_00000500"}));
  EXPECT_EQ(testing::text_of(folder_ + "/best"), "step_00000200");
  EXPECT_EQ(checkpoint_at(folder_ + "/best"), folder_ + "/step_00000200");
  save(550, retention, 0.5);
  save(570, retention, 0.7);
  EXPECT_EQ(names(), (Names{"best", "latest", "step_00000300", "step_00000550", "step_00000570"}));
  EXPECT_EQ(testing::text_of(folder_ + "/best"), "step_00000550");
  retention.best_is = BestIs::kHighest;
  save(580, retention, 0.1);
  EXPECT_EQ(names(), (Names{"best", "latest", "step_00000300", "step_00000580"}));
  EXPECT_EQ(testing::text_of(folder_ + "/best"), "step_00000300");  // it has 2.0
  retention.best_metric = "t2m.rmse";                               // no checkpoint has a score of it
  save(590, retention, 0.1);
  EXPECT_EQ(names(), (Names{"latest", "step_00000300", "step_00000590"}));
}

TEST_F(Writer, LeftoversAndFoldersThatAreNotWholeDoNotCount) {
  save(100);
  save(200);
  fs::create_directories(folder_ + "/.tmp-step_00000300/x");
  fs::create_directories(folder_ + "/step_00000900");
  std::vector<std::string> warnings;
  EXPECT_EQ(newest_checkpoint(folder_, *self_, warnings)->stored.manifest.step, 200);
  EXPECT_EQ(warnings,
            Names{folder_ + "/step_00000900 is not a whole checkpoint: it has no manifest.json; it is "
                            "passed over"});
  CheckpointFolder(folder_).clean();
  save(300, {.keep = 2});
  EXPECT_EQ(names(), (Names{"latest", "step_00000200", "step_00000300", "step_00000900"}));
}

TEST_F(Writer, ThoseOfAnotherHistoryAreMovedAside) {
  for (const std::int64_t step : {100, 200, 300}) save(step);
  const CheckpointFolder folder(folder_);
  EXPECT_EQ(folder.set_aside_after(2), folder_ + ".old-1");
  EXPECT_EQ(names(), (Names{"latest", "step_00000100", "step_00000200"}));
  EXPECT_EQ(text_of(folder_ + "/latest"), "step_00000200");
  EXPECT_EQ(names_in(folder_ + ".old-1"), Names{"step_00000300"});
  EXPECT_EQ(folder.set_aside_after(2), "");
  EXPECT_EQ(folder.set_aside_after(0), folder_ + ".old-2");
  EXPECT_EQ(newest_step(), -1);
  EXPECT_EQ(names_in(folder_ + ".old-2").size(), 3u);
  EXPECT_EQ(folder.set_aside_after(0), "");
  save(1);
  EXPECT_EQ(newest_step(), 1);
}

/// A child of two ranks saves on and on, some steps twice, and is killed at any moment.
TEST_F(Writer, KilledAtAHundredRandomTimesTheLastOneIsWhole) {
  std::mt19937 random(7);
  save(1);
  std::int64_t last = 1, saves = 0;
  for (int round = 0; round < 100; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      run_ranks(2, [&](Communicator& c) {
        CheckpointWriter writer(folder_, {.keep = 1 + round % 3}, c);
        for (std::int64_t step = last + 1;; step += round % 2) {
          const auto pieces = case_pieces(c, step, round % 5 == 0 ? Cut::kLastDim : Cut::kRuns);
          if (const auto outcome = writer.finish(); outcome && !outcome->saved()) ::_exit(1);
          writer.start(case_manifest(step), pieces);
        }
      });
    }
    // Half of them as they start, half at any moment of a save after the next.
    if (round % 2 == 0) {
      const std::string before = text_of(folder_ + "/latest");
      siginfo_t ended{};
      while (text_of(folder_ + "/latest") == before && ended.si_pid == 0) {
        ::usleep(100);
        ::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOHANG | WNOWAIT);
      }
    }
    ::usleep(static_cast<useconds_t>(random() % (round % 2 == 0 ? 4'000 : 30'000)));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child ended by itself";
    const auto found = newest();
    ASSERT_TRUE(found);
    const std::int64_t step = found->stored.manifest.step;
    ASSERT_GE(step, last);
    saves += step > last ? 1 : 0;
    last = step;
    expect_case(*found, last, *self_, Cut::kRuns);
    CheckpointFolder(folder_).clean();
  }
  std::printf("100 kills, %lld of them after a new checkpoint\n", static_cast<long long>(saves));
  EXPECT_GE(saves, 50) << "children hardly came to save anything";
}

}  // namespace
}  // namespace jigsaw
