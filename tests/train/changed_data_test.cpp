// What is told of training data that are others than those of the run that is to be resumed.
#include "train/changed_data.h"

#include <gtest/gtest.h>

#include "comm/self/self.h"
#include "config/config.h"
#include "samples/sample_data.h"
#include "support/temporary_folder.h"
#include "task/opened_run.h"

namespace jigsaw {
namespace changed_data_test {

Statistics statistics_of(const std::map<std::string, FieldStatistics>& fields) {
  return {6 * kHour, fields, {}};
}

/// 2 deviations of "t" are more than a tenth of that of "z", though numbers of "z" are larger.
TEST(LargestChange, IsThatOfTheVariableThatIsNormalisedMostDifferently) {
  const Statistics before =
      statistics_of({{"t", {"K", 280, 10, 1}}, {"z", {"m2 s-2", 54000, 3000, 200}}, {"old", {"K", 1, 1}}});
  EXPECT_EQ(largest_change(before, before), "");
  const Statistics now =
      statistics_of({{"t", {"K", 300, 12.5, 1}}, {"z", {"m2 s-2", 54500, 3300, 200}}, {"new", {"K", 9, 9}}});
  EXPECT_EQ(largest_change(before, now), "t: mean 280 and deviation 10 before, 300 and 12.5 now");
  Statistics increments = before;
  increments.fields["z"].increment_deviation = 100;
  EXPECT_EQ(largest_change(before, increments),
            "z: mean 54000, deviation 3000 and that of increments 200 before, 54000, 3000 and 100 now");
  // In so many digits that the change is seen.
  Statistics little = before;
  little.fields["t"].mean = 280.0000001;
  EXPECT_EQ(largest_change(before, little), "t: mean 280 and deviation 10 before, 280.0000001 and 10 now");
  // Those of other values do not compare.
  Statistics logarithms = before;
  logarithms.fields["t"] = {"K", 5, 0.1, 1, "log(x + 1e-05)"};
  EXPECT_EQ(largest_change(before, logarithms), "");
}

TEST(ChangedData, SaysWhatThereWasAndIs) {
  const testing::TemporaryFolder folder;
  write_sample_data({}, folder.path());
  const Json config = {
      {"data",
       {{"files", {folder.path() + "/*.nc"}},
        {"variables", {"t2m"}},
        {"train", {"2021-01-02", "2021-01-05"}}}},
      {"model", {{"type", "weathermixer"}, {"patch", {5, 9}}, {"embed_dim", 4}, {"depth", 1}}}};
  Context context = Context::make_host(Backend::kCpu, 1);
  const auto self = make_self_communicator(context);
  OpenedRun run(parse<Configuration>(config), folder.path(), *self);
  const SampleSource& data = run.data();
  const Json extra = {{"data", data_fingerprint(data)},
                      {"statistics", Json::parse(data.statistics().to_text())}};
  EXPECT_FALSE(changed_data(extra, data));
  Json fewer = extra;
  fewer["data"]["samples"] = 7;
  const auto samples = changed_data(fewer, data);
  ASSERT_TRUE(samples);
  EXPECT_EQ(samples->key, "samples");
  EXPECT_EQ(samples->detail, "7 before, " + std::to_string(data.count(Split::kTrain)) + " now");
  Json colder = extra;
  colder["data"]["statistics"] = "of others";
  colder["statistics"]["fields"]["t2m"]["mean"] = 100.5;
  const auto statistics = changed_data(colder, data);
  ASSERT_TRUE(statistics);
  EXPECT_EQ(statistics->key, "statistics");
  EXPECT_TRUE(statistics->detail.starts_with("t2m: mean 100.5 and deviation ")) << statistics->detail;
  colder.erase("statistics");  // as of a checkpoint that keeps none
  EXPECT_EQ(changed_data(colder, data)->detail, "");
}

}  // namespace changed_data_test
}  // namespace jigsaw
