// What is on the disk when the machine dies at any moment of a save: only what was synced.
#include <gtest/gtest.h>

#include <set>

#include "base/text.h"
#include "comm/self/self.h"
#include "io/checkpoint/checkpoint_cases.h"
#include "io/checkpoint/disk_recorder.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace {

using testing::case_manifest;
using testing::case_pieces;
using testing::Cut;
using testing::DiskEvent;
using testing::DiskRecorder;
using testing::TemporaryFolder;
using testing::Tree;

class Durability : public ::testing::Test {
 protected:
  void save(std::int64_t step) {
    save_checkpoint(folder_, case_manifest(step), case_pieces(*self_, step, Cut::kRuns), *self_, {.keep = 1});
  }
  /// The step of the checkpoint that a run would go on from, every byte of it verified and right; 0: none.
  std::int64_t survives(const Tree& tree) {
    const TemporaryFolder dead;
    testing::plant(tree, dead.path());
    std::vector<std::string> warnings;
    const auto found = newest_checkpoint(dead.path() + "/checkpoints", *self_, warnings);
    if (!found) return 0;
    const std::int64_t step = found->stored.manifest.step;
    testing::expect_case(*found, step, *self_, Cut::kLastDim);
    return step;
  }
  /// Both ways in which a disk may stand.
  void expect_after(const DiskEvent& event, const std::set<std::int64_t>& steps) {
    for (const Tree* tree : {&event.after.synced, &event.after.names_early}) {
      EXPECT_TRUE(steps.contains(survives(*tree)))
          << "after " << event.call << (tree == &event.after.synced ? "" : ", with names written early");
    }
  }

  TemporaryFolder temporary_;
  std::string folder_ = temporary_.path() + "/checkpoints";
  Context context_ = Context::make_host(Backend::kReference, 1);
  std::unique_ptr<Communicator> self_ = make_self_communicator(context_);
};

TEST_F(Durability, EveryFileIsSyncedBeforeItGetsItsNameAndEveryNameBeforeTheNextStep) {
  save(1);
  const DiskRecorder disk(temporary_.path());
  save(2);
  std::vector<std::string> calls;
  for (const DiskEvent& event : disk.events()) calls.push_back(event.call);
  const std::string fresh = "checkpoints/.tmp-step_00000002", gone = "checkpoints/.tmp-removed-step_00000001",
                    manifest = private_name(fresh + "/manifest.json"),
                    latest = private_name("checkpoints/latest");
  const std::vector<std::string> expected = {"sync checkpoints",
                                             concat("sync ", fresh, "/rank_0000.h5"),
                                             concat("sync ", fresh),
                                             concat("sync ", fresh, "/parameters.h5"),
                                             concat("sync ", manifest),
                                             concat("rename ", manifest, " ", fresh, "/manifest.json"),
                                             concat("sync ", fresh),
                                             concat("rename ", fresh, " checkpoints/step_00000002"),
                                             "sync checkpoints",
                                             "sync " + latest,
                                             concat("rename ", latest, " checkpoints/latest"),
                                             "sync checkpoints",
                                             concat("rename checkpoints/step_00000001 ", gone),
                                             "sync checkpoints"};
  EXPECT_EQ(calls, expected);
}

TEST_F(Durability, AMachineThatDiesLeavesTheCheckpointBeforeOrTheNewOne) {
  const DiskRecorder disk(temporary_.path());
  save(1);
  const std::size_t first = disk.events().size();
  expect_after(disk.events().back(), {1});
  save(2);
  for (std::size_t i = first; i < disk.events().size(); ++i) expect_after(disk.events()[i], {1, 2});
  expect_after(disk.events().back(), {2});
}

TEST_F(Durability, ACheckpointOfTheSameStepIsReplacedWithoutAGap) {
  const DiskRecorder disk(temporary_.path());
  save(1);
  const std::size_t first = disk.events().size();
  save(1);
  for (std::size_t i = first; i < disk.events().size(); ++i) expect_after(disk.events()[i], {1});
}

/// That the disk above notices: where syncing does nothing, nothing is there.
TEST_F(Durability, ADiskThatForgetsToSyncLosesAll) {
  const DiskRecorder disk(temporary_.path(), false);
  save(1);
  ASSERT_FALSE(disk.events().empty());
  EXPECT_EQ(survives(disk.events().back().after.synced), 0);
  EXPECT_EQ(survives(disk.events().back().after.names_early), 0);
}

}  // namespace
}  // namespace jigsaw
