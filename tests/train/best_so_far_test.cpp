// By what it shows that validations are of other data than before, whatever the model is.
#include "train/best_so_far.h"

#include <gtest/gtest.h>

namespace jigsaw {
namespace best_so_far_test {

TEST(OtherValidationData, ShowByTheirNumberOrByWhatIsNoModels) {
  const Json before = {
      {"kind", "valid"},
      {"loss", 0.5},
      {"metrics", {{"t2m", {{"rmse", 2.5}, {"persistence_rmse", 2.0}}}, {"u", {{"rmse", 1.0}}}}},
      {kValidationSamples, 20}};
  EXPECT_EQ(other_validation_data(before, before), "");
  Json now = before;
  now["metrics"]["t2m"]["rmse"] = 1.5;                    // of another model
  now["metrics"]["t2m"]["persistence_rmse"] = 2.0000001;  // summed in another order
  now["metrics"]["v"] = {{"rmse", 1.0}, {"persistence_rmse", 9.0}};
  EXPECT_EQ(other_validation_data(before, now), "");
  now["metrics"]["t2m"]["persistence_rmse"] = 2.5;
  EXPECT_EQ(other_validation_data(before, now), "t2m.persistence_rmse is 2.5, and was 2");
  now[kValidationSamples] = 24;
  EXPECT_EQ(other_validation_data(before, now), "the number of samples is 24, and was 20");
  // Lines that do not say it: of earlier versions, of values that are not finite, none at all.
  now.erase(kValidationSamples);
  now["metrics"]["t2m"]["persistence_rmse"] = nullptr;
  EXPECT_EQ(other_validation_data(before, now), "");
  EXPECT_EQ(other_validation_data(nullptr, before), "");
  EXPECT_EQ(other_validation_data({{"metrics", 3}}, before), "");
}

}  // namespace best_so_far_test
}  // namespace jigsaw
