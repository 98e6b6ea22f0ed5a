// Which keys of a sweep change what its metric measures.
#include "sweep/comparable.h"

#include <gtest/gtest.h>

namespace jigsaw {
namespace comparable_test {

Configuration base(const std::vector<std::string>& changes = {}) {
  Json json = {{"data",
                {{"files", Json::array({"a.nc"})},
                 {"variables", Json::array({"t2m"})},
                 {"train", {"2020-01-01", "2020-01-02"}}}},
               {"model", {{"type", "weathermixer"}, {"patch", {3, 7}}, {"embed_dim", 8}, {"depth", 1}}}};
  for (const std::string& change : changes) apply_override(json, change);
  return parse<Configuration>(json);
}

std::string remark(const char* grid, const std::vector<std::string>& changes = {}) {
  const auto space = parse<SearchSpace>(Json::parse(grid));
  const Configuration configuration = base(changes);
  return comparison_remark(space, candidates(space, to_json(configuration)), configuration);
}

TEST(ComparisonRemark, NamesTheKeysThatMakeTheLossAnother) {
  EXPECT_EQ(remark(R"({"keys": {"loss.type": ["mse", "l1"], "seed": [1, 2]}})"),
            "the sweep changes loss.type, and with it what loss measures: its values do not say which run is "
            "better; "
            "\"metric\": \"t2m.rmse\" is the same quantity in all");
  for (const char* keys : {R"("data.predict": ["increment", "state"])", R"("train.rollout": [1, 2])",
                           R"("data.train": [["2021-01-01", "2021-01-15"], ["2021-01-01", "2021-03-10"]])",
                           R"("data.transforms": [{}, {"t2m": {"type": "log"}}])",
                           R"("loss": [{"type": "mse"}, {"type": "l1"}])"}) {
    const std::string grid = std::string(R"({"keys": {)") + keys + "}";
    EXPECT_NE(remark((grid + "}").c_str()).find("t2m.rmse"), std::string::npos) << keys;
    EXPECT_EQ(remark((grid + R"(, "metric": "t2m.rmse"})").c_str()), "") << keys;
  }
}

TEST(ComparisonRemark, SaysNothingWhereTheLossIsOne) {
  EXPECT_EQ(
      remark(R"({"keys": {"optimizer.learning_rate": [0.1, 0.2], "seed": [1, 2], "train.steps": [3, 4]}})"),
      "");
  EXPECT_EQ(remark(R"({"keys": {"loss.type": ["l1"], "seed": [1, 2]}})"), "") << "all runs have the same";
  EXPECT_EQ(remark(R"({"keys": {"train.rollout": [1, 2]}})", {"validation.rollout=2"}), "");
  EXPECT_EQ(remark(R"({"keys": {"train.rollout": [1, 2], "validation.rollout": [2]}})"), "");
  EXPECT_EQ(
      remark(R"({"keys": {"data.train": [["2021-01-01", "2021-01-15"], ["2021-01-01", "2021-03-10"]]}})",
             {"data.normalization=statistics.json"}),
      "");
}

TEST(ComparisonRemark, KnowsWhatMakesEveryScoreAnother) {
  const std::string found = remark(
      R"({"keys": {"data.valid": [["2021-01-01", "2021-01-15"], ["2021-02-01", "2021-03-10"]]}, "metric": "t2m.rmse"})");
  EXPECT_NE(found.find("what t2m.rmse measures"), std::string::npos) << found;
  EXPECT_EQ(found.find("\"metric\""), std::string::npos) << "none compares";
}

TEST(ComparisonRemark, LooksIntoSectionsThatAreSetAsAWhole) {
  const auto sections = [](const char* first, const char* second) {
    return std::string(R"({"method": "list", "runs": [{"train": )") + first + R"(}, {"train": )" + second +
           "}]}";
  };
  EXPECT_EQ(remark(sections(R"({"rollout": 2, "steps": 3})", R"({"rollout": 2, "steps": 4})").c_str()), "");
  EXPECT_NE(remark(sections(R"({"rollout": 2})", R"({"rollout": 3})").c_str()).find("changes train,"),
            std::string::npos);
  EXPECT_NE(remark(sections(R"({"rollout": 2})", "{}").c_str()).find("changes train,"), std::string::npos);
}

TEST(ComparisonRemark, SaysThatHalvingGoesByIt) {
  EXPECT_NE(remark(R"({"method": "halving", "count": 2, "keys": {"loss.type": ["mse", "l1"]}})")
                .find(", and halving goes by them;"),
            std::string::npos);
}

}  // namespace comparable_test
}  // namespace jigsaw
