// Which checkpoints a run keeps as its best.
#include "train/checkpointer.h"

#include <gtest/gtest.h>

#include "array/host_view.h"
#include "comm/self/self.h"
#include "support/error_of.h"
#include "support/small_disk.h"
#include "support/temporary_folder.h"
#include "train/changed_data.h"

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

}  // namespace checkpointer_test
}  // namespace jigsaw
