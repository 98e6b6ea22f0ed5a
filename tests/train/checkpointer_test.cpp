// Which checkpoints a run keeps as its best.
#include "train/checkpointer.h"

#include <gtest/gtest.h>

#include "array/host_view.h"
#include "comm/self/self.h"
#include "support/error_of.h"
#include "support/small_disk.h"
#include "support/temporary_folder.h"
#include "train/best_so_far.h"
#include "train/changed_data.h"
#include "train/training_state.h"

namespace jigsaw {
namespace checkpointer_test {

/// What a checkpoint says of its data must be what the data are now; what it does not say counts as another.
TEST(FirstDifference, IsTheFirstKeyThatIsOtherOrMissing) {
  const Json now = {{"grid", {3, 4}}, {"samples", 7}};
  EXPECT_EQ(first_difference(now, now), "");
  EXPECT_EQ(first_difference({{"samples", 7}, {"grid", {3, 4}}, {"more", 1}}, now), "");
  EXPECT_EQ(first_difference({{"grid", {3, 4}}, {"samples", 8}}, now), "samples");
  EXPECT_EQ(first_difference({{"grid", {3, 4}}}, now), "samples");
  EXPECT_EQ(first_difference(Json::object(), now), "grid");
  EXPECT_EQ(first_difference(nullptr, now), "grid");
}

class CheckpointerTest : public ::testing::Test {
 protected:
  CheckpointerTest() {
    CheckpointOptions options;
    options.every = 1000;
    options.best = "loss";
    checkpointer_ = std::make_unique<Checkpointer>(options, folder_.path() + "/checkpoints", *self_, log_);
    checkpointer_->begin(nullptr);
    weights_ = Array(context_, {1000}, DType::kFloat32, Purpose::kParameters);
    std::ranges::fill(HostView<float>(weights_), 1.0F);
  }
  static CheckpointScore loss(double value) { return {"loss", value}; }
  void save(std::int64_t step, double value) {
    checkpointer_->save({step, {}, {}, loss(value)},
                        {{"parameters/w", {1000}, Box::whole({1000}), weights_}});
    checkpointer_->finish();
  }

  testing::TemporaryFolder folder_;
  Context context_ = Context::make_host(Backend::kReference, 1);
  std::unique_ptr<Communicator> self_ = make_self_communicator(context_);
  Log log_{false};
  std::unique_ptr<Checkpointer> checkpointer_;
  Array weights_;
};

TEST_F(CheckpointerTest, ASaveThatFailedDoesNotCountAsTheBest) {
  EXPECT_TRUE(checkpointer_->is_best(loss(0.5)));
  save(1, 0.5);
  EXPECT_FALSE(checkpointer_->is_best(loss(0.6)));
  EXPECT_TRUE(checkpointer_->is_best(loss(0.3)));
  {
    const testing::SmallDisk disk(2000);
    save(2, 0.3);
  }
  EXPECT_TRUE(checkpointer_->is_best(loss(0.4)));
  EXPECT_FALSE(checkpointer_->is_best(loss(0.5)));
  save(3, 0.4);
  EXPECT_FALSE(checkpointer_->is_best(loss(0.45)));
}

/// As it is: a run whose first save fails has nothing to go on from.
TEST_F(CheckpointerTest, AFailureSaysWhetherThereIsAnEarlierOne) {
  const auto failure = [&](std::int64_t step) {
    const testing::SmallDisk disk(2000);
    save(step, 0.5);
    return testing::error_of([&] { checkpointer_->finish_last(); });
  };
  EXPECT_TRUE(failure(1).ends_with("; there is no earlier one"));
  save(2, 0.5);
  EXPECT_TRUE(failure(3).ends_with("; earlier checkpoints are kept"));
}

/// Of Dice the highest without a word of it, of biases that nearest 0; as is asked for where it is.
TEST_F(CheckpointerTest, TheBestIsByTheMeasureUnlessToldOtherwise) {
  struct Case {
    const char* metric;
    BestIs best_is;
    double worse, better;
  };
  for (const Case& one : {Case{"mask.dice.1", BestIs::kAuto, 0.6, 0.7},
                          {"x.rmse", BestIs::kAuto, 0.7, 0.6},
                          {"x.bias", BestIs::kAuto, -0.7, 0.6},
                          {"x.bias", BestIs::kLowest, 0.6, -0.7},
                          {"x.rmse", BestIs::kHighest, 0.6, 0.7}}) {
    SCOPED_TRACE(one.metric);
    const testing::TemporaryFolder folder;
    CheckpointOptions options;
    options.every = 1000;
    options.best = one.metric;
    options.best_is = one.best_is;
    Checkpointer checkpointer(options, folder.path() + "/checkpoints", *self_, log_);
    checkpointer.begin(nullptr);
    const auto score = [&](double value) { return CheckpointScore{one.metric, value}; };
    const auto save_scored = [&](std::int64_t step, double value) {
      checkpointer.save({step, {}, {}, score(value)},
                        {{"parameters/w", {1000}, Box::whole({1000}), weights_}});
      checkpointer.finish();
    };
    save_scored(1, one.worse);
    EXPECT_FALSE(checkpointer.is_best(score(one.worse)));
    EXPECT_TRUE(checkpointer.is_best(score(one.better)));
    save_scored(2, one.better);
    EXPECT_FALSE(checkpointer.is_best(score(one.worse)));
    EXPECT_EQ(testing::text_of(folder.path() + "/checkpoints/best"), "step_00000002");
  }
}

TEST(JudgesAsBefore, UnlessAnotherValueIsTheBest) {
  CheckpointOptions now;
  now.best = "mask.dice.1";
  const auto before = [](const char* best_is) { return Json{{"checkpoint", {{"best_is", best_is}}}}; };
  EXPECT_FALSE(judges_as_before(before("lowest"), now)) << "the default of earlier versions";
  EXPECT_TRUE(judges_as_before(before("highest"), now) && judges_as_before(before("auto"), now));
  now.best = "x.rmse";
  EXPECT_TRUE(judges_as_before(before("lowest"), now));
  for (const char* other : {"{}", "[]", R"({"checkpoint": 1})"})
    EXPECT_TRUE(judges_as_before(Json::parse(other), now)) << other;
}

}  // namespace checkpointer_test
}  // namespace jigsaw
