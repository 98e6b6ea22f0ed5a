// Validations that take long: each of their units is progress, and between any two they can be ended. Saves,
// too. Long rollouts take the memory of short ones.
#include "train/validation.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "array/host_view.h"
#include "base/error.h"
#include "base/heartbeat.h"
#include "base/text.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/writer.h"
#include "comm/agreement.h"
#include "comm/patience.h"
#include "comm/self/self.h"
#include "comm/thread/run_ranks.h"
#include "config/config.h"
#include "samples/sample_data.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace validation_test {

using std::chrono::hours;
using std::chrono::minutes;

/// A small model on sample data, validated in 30 batches and more.
class ValidationTest : public ::testing::Test {
 protected:
  ValidationTest() {
    write_sample_data({}, folder_.path());
    run_ = std::make_unique<OpenedRun>(parse<Configuration>(config()), folder_.path(), *self_);
  }

  Json config() const {
    return {{"data",
             {{"files", {folder_.path() + "/*.nc"}},
              {"variables", {"t2m"}},
              {"train", {"2021-01-02", "2021-01-05"}},
              {"valid", {"2021-02-01", "2021-02-20"}}}},
            {"model", {{"type", "weathermixer"}, {"patch", {5, 9}}, {"embed_dim", 4}, {"depth", 1}}},
            {"train", {{"batch_size", 2}}}};
  }
  /// The same on ranks that cut the rows, over some leads, at which forcings and a rim are given.
  Configuration rollouts_on(int ranks, int leads) const {
    Json json = config();
    json["data"]["valid"] = {"2021-02-01", "2021-02-11"};
    json["data"]["forcings"] = {"time_of_day"};
    json["data"]["boundary_width"] = 1;
    json["mesh"]["domain"] = {ranks, 1};
    json["validation"]["rollout"] = leads;
    return parse<Configuration>(json);
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

/// Four leads' worth at most: one that runs, the next in its place, and two that are read ahead; each may be
/// one that a rollout starts from.
TEST_F(ValidationTest, HoldsAFewLeadsOfItsPiecesHoweverManyThereAre) {
  for (const int ranks : {1, 2}) {
    for (const int leads : {2, 40}) {
      run_ranks(ranks, [&](Communicator& world) {
        SCOPED_TRACE(concat(leads, " leads on rank ", world.rank(), " of ", world.size()));
        ASSERT_EQ(world.size(), ranks);
        OpenedRun run(rollouts_on(ranks, leads), folder_.path(), world);
        const PlacedModel& placed = run.placed();
        const std::int64_t size = size_of(placed.types().master),
                           input = size * placed.input_box(2).extent.count(),
                           target = size * placed.target_box(run.loss(), 2).extent.count();
        EXPECT_LE(target, size * 2 * 72 * (ranks == 1 ? 37 : 20)) << "of 8 rows of patches each has its part";
        const Arena& arena = world.context().arena();
        world.context().arena().reset_peaks();
        ASSERT_TRUE(Validation(run).run([] { return false; }));
        const std::int64_t start = 2 * input + target, lead = input + target;
        EXPECT_GE(arena.peak_bytes(Purpose::kInput), start + lead);
        EXPECT_LE(arena.peak_bytes(Purpose::kInput), 4 * (start + lead)) << "of them all " << leads * lead;
        EXPECT_EQ(arena.current_bytes(Purpose::kInput), 0);
      });
    }
  }
}

TEST_F(ValidationTest, WhatOneRankCannotReadOfALeadStopsAll) {
  constexpr int kLeads = 5, kTorn = 3;
  run_ranks(2, [&](Communicator& world) {
    ASSERT_EQ(world.size(), 2);
    OpenedRun run(rollouts_on(2, kLeads), folder_.path(), world);
    Validation validation(run);
    const auto load = [&](std::int64_t batch, int lead) {
      if (world.rank() == 1 && lead == kTorn) throw DataError("t2m is torn");
      return validation.read(batch, lead, world.context());
    };
    Rollouts rollouts(run, load, validation.batches(), kLeads);
    int leads = 0;
    const auto use = [&](int lead, const ShardedTensor&, const Batch& batch) {
      EXPECT_EQ(lead, leads++);
      EXPECT_TRUE(batch.target(lead).defined());
    };
    EXPECT_THROW(rollouts.run_next(2, use), AgreedError);
    EXPECT_EQ(leads, kTorn);
  });
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

}  // namespace validation_test
}  // namespace jigsaw
