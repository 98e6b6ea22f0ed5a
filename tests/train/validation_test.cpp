// Validations that take long: each of their units is progress, and between any two they can be ended. Saves,
// too.
#include "train/validation.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "array/host_view.h"
#include "base/heartbeat.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/writer.h"
#include "comm/patience.h"
#include "comm/self/self.h"
#include "config/config.h"
#include "samples/sample_data.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

/// A small model on sample data, validated in 30 batches and more.
class ValidationTest : public ::testing::Test {
 protected:
  ValidationTest() {
    write_sample_data({}, folder_.path());
    Json json = {{"data",
                  {{"files", {folder_.path() + "/*.nc"}},
                   {"variables", {"t2m"}},
                   {"train", {"2021-01-02", "2021-01-05"}},
                   {"valid", {"2021-02-01", "2021-02-20"}}}},
                 {"model", {{"type", "weathermixer"}, {"patch", {5, 9}}, {"embed_dim", 4}, {"depth", 1}}},
                 {"train", {{"batch_size", 2}}}};
    run_ = std::make_unique<OpenedRun>(parse<Configuration>(json), folder_.path(), *self_);
  }

  testing::TemporaryFolder folder_;
  Context context_ = Context::make_host(Backend::kCpu, 1);
  std::unique_ptr<Communicator> self_ = make_self_communicator(context_);
  std::unique_ptr<OpenedRun> run_;
};

/// Of half an hour for a batch and an hour of patience: with a clock that the test turns.
TEST_F(ValidationTest, OneThatIsLongerThanTheWatchdogsPatienceIsNoHang) {
  const auto heartbeat = std::make_shared<Heartbeat>();
  const WorksFor rank(heartbeat);
  Validation validation(*run_);
  ASSERT_GT(validation.batches(), 30);
  Patience::Time clock;
  Patience patience(hours(1), clock);
  std::int64_t asked = 0;
  const auto result = validation.run([&] {
    clock += minutes(29);
    EXPECT_FALSE(patience.look({clock, heartbeat->count(), 0}).spent) << "in batch " << asked;
    ++asked;
    return false;
  });
  ASSERT_TRUE(result);
  EXPECT_EQ(asked, validation.batches());
}

TEST_F(ValidationTest, EndsBeforeItsNextBatchWhenItIsToStop) {
  Validation validation(*run_);
  int asked = 0;
  EXPECT_FALSE(validation.run([&] { return ++asked == 3; }));
  EXPECT_EQ(asked, 3);
  const auto whole = validation.run([] { return false; }), again = validation.run([] { return false; });
  EXPECT_EQ(whole->loss, again->loss);
}

TEST_F(ValidationTest, ARehearsalLeavesNoTrace) {
  Validation validation(*run_);
  const double before = context_.tally().flops;
  validation.rehearse();
  EXPECT_EQ(context_.tally().flops, before);
  EXPECT_EQ(self_->traffic().total_bytes(), 0);
  EXPECT_GT(validation.run([] { return false; })->loss, 0);
}

/// A save is written and verified in units, on whatever thread.
TEST_F(ValidationTest, SavesAndVerificationsBeat) {
  const auto heartbeat = std::make_shared<Heartbeat>();
  const WorksFor rank(heartbeat);
  Array weights(context_, {std::int64_t{8} << 20}, DType::kFloat32, Purpose::kParameters);
  std::ranges::fill(HostView<float>(weights), 1.0F);
  const std::string folder = folder_.path() + "/checkpoints";
  const SaveOutcome saved =
      save_checkpoint(folder, {1, {}, {}, {}},
                      {{"parameters/w", weights.shape(), Box::whole(weights.shape()), weights}}, *self_, {});
  EXPECT_GE(heartbeat->count(), 8U) << "of 32 MiB, hashed and written in units of at most eight";
  const std::uint64_t before = heartbeat->count();
  open_checkpoint(saved.path, *self_, Verify::kBytes);
  EXPECT_GE(heartbeat->count() - before, 8U) << "of 32 MiB, read in units of four";
}

}  // namespace
}  // namespace jigsaw
