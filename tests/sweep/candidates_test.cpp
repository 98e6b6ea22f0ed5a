#include "sweep/candidates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "sweep/run_name.h"
#include "sweep/whole_ranges.h"

namespace jigsaw {
namespace {

std::vector<Assignment> of(const char* grid, const char* base = "{}") {
  return candidates(parse<SearchSpace>(parse_json(grid, "grid")), parse_json(base, "base"));
}

std::string error_of(const char* grid) {
  try {
    of(grid);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Candidates, AGridIsEveryCombinationTheLastKeyFastest) {
  const std::vector<Assignment> runs = of(R"({"keys": {"b": [1, 2], "a": ["x", "y", "z"]}})");
  ASSERT_EQ(runs.size(), 6U);
  EXPECT_EQ(runs[0], (Assignment{{"a", "x"}, {"b", 1}}));
  EXPECT_EQ(runs[1], (Assignment{{"a", "x"}, {"b", 2}}));
  EXPECT_EQ(runs[5], (Assignment{{"a", "z"}, {"b", 2}}));
}

TEST(Candidates, AConditionDropsAKeyAndItsDuplicates) {
  const char* grid = R"({"keys": {"model.type": ["vit", "mixer"],
                                  "model.heads": {"values": [4, 8], "when": {"model.type": "vit"}}}})";
  const std::vector<Assignment> runs = of(grid);
  ASSERT_EQ(runs.size(), 3U);
  EXPECT_EQ(std::count_if(runs.begin(), runs.end(),
                          [](const Assignment& run) { return run.contains("model.heads"); }),
            2);
}

TEST(Candidates, AConditionSeesTheConfigurationWhereTheSweepSetsNothing) {
  const char* grid = R"({"keys": {"model.heads": {"values": [4, 8], "when": {"model.type": "vit"}}}})";
  EXPECT_EQ(of(grid, R"({"model": {"type": "vit"}})").size(), 2U);
  const std::vector<Assignment> other = of(grid, R"({"model": {"type": "unet"}})");
  ASSERT_EQ(other.size(), 1U);
  EXPECT_TRUE(other[0].empty());
}

TEST(Candidates, ConditionsInACircleAreRefused) {
  EXPECT_NE(
      error_of(
          R"({"keys": {"a": {"values": [1], "when": {"b": 1}}, "b": {"values": [1], "when": {"a": 1}}}})")
          .find("depend on each other"),
      std::string::npos);
}

TEST(Candidates, DrawsStayWhenMoreAreAskedFor) {
  const std::string keys = R"("keys": {"rate": {"from": 1e-4, "to": 1e-2, "scale": "log"},
                                       "depth": {"from": 2, "to": 5, "integer": true}, "act": ["gelu", "relu"]})";
  const auto few = of(concat(R"({"method": "random", "count": 5, )", keys, "}").c_str());
  const auto many = of(concat(R"({"method": "random", "count": 400, )", keys, "}").c_str());
  ASSERT_EQ(few.size(), 5U);
  EXPECT_TRUE(std::equal(few.begin(), few.end(), many.begin()));
  // Evenly over the logarithm: half of the rates below the geometric mean; every depth and word comes.
  int low = 0;
  std::map<std::int64_t, int> depths;
  for (const Assignment& run : many) {
    const double rate = run.at("rate").get<double>();
    EXPECT_TRUE(rate >= 1e-4 && rate <= 1e-2) << rate;
    low += rate < 1e-3 ? 1 : 0;
    ++depths[run.at("depth").get<std::int64_t>()];
  }
  EXPECT_NEAR(low, 200, 50);
  EXPECT_EQ(depths.size(), 4U);
  EXPECT_EQ(depths.begin()->first, 2);
  EXPECT_EQ(depths.rbegin()->first, 5);
}

TEST(Candidates, ARangeWhoseRatioIsBeyondAllNumbersIsDrawnFrom) {
  const auto all = of(
      R"({"method": "random", "count": 100, "keys": {"rate": {"from": 1e-160, "to": 1e160, "scale": "log"}}})");
  ASSERT_EQ(all.size(), 100U);
  int low = 0;
  for (const Assignment& run : all) low += run.at("rate").get<double>() < 1 ? 1 : 0;
  EXPECT_NEAR(low, 50, 20);
}

/// Rates of four digits come again; what was drawn first stays first.
TEST(Candidates, DrawsThatComeAgainAreMadeUpFor) {
  const char* keys = R"("keys": {"rate": {"from": 1, "to": 1.2}, "act": ["gelu", "relu"]})";
  const auto few = of(concat(R"({"method": "random", "count": 20, )", keys, "}").c_str());
  const auto many = of(concat(R"({"method": "random", "count": 300, )", keys, "}").c_str());
  ASSERT_EQ(few.size(), 20U);
  ASSERT_EQ(many.size(), 300U) << "of 402 that there are";
  EXPECT_TRUE(std::equal(few.begin(), few.end(), many.begin()));
  // More than there are, lists, and ranges of whole numbers end.
  const std::size_t all = of(concat(R"({"method": "random", "count": 5000, )", keys, "}").c_str()).size();
  EXPECT_GT(all, 390U);
  EXPECT_LE(all, 402U);
  EXPECT_EQ(of(R"({"method": "random", "count": 50, "keys": {"act": ["gelu", "relu"]}})").size(), 2U);
  EXPECT_EQ(
      of(R"({"method": "halving", "count": 99, "keys": {"depth": {"from": 1, "to": 3, "integer": true}}})")
          .size(),
      3U);
}

TEST(Candidates, FaultyFilesAreRefused) {
  EXPECT_NE(error_of(R"({"method": "random", "count": 1000001, "keys": {"a": [1]}})").find("1000000"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"keys": {}})").find("keys"), std::string::npos);
  EXPECT_NE(error_of(R"({"keys": {"a": {"from": 1, "to": 2}}})").find("needs a list"), std::string::npos);
  EXPECT_NE(error_of(R"({"method": "random", "keys": {"a": [1]}})").find("count"), std::string::npos);
  EXPECT_NE(error_of(R"({"keys": {"output": ["x"]}})").find("output"), std::string::npos);
  EXPECT_NE(error_of(R"({"metod": "grid"})").find("did you mean"), std::string::npos);
}

/// What takes the run as it is refused something else.
TEST(WholeRanges, AreAdvisedWhereTheDrawsWereRefused) {
  const auto space = parse<SearchSpace>(
      Json::parse(R"({"method": "random", "count": 2, "keys": {"a": {"from": 1, "to": 9}}})"));
  const auto whole_alone = [](const Assignment& run) { return run.at("a").is_number_integer(); };
  EXPECT_NE(wants_whole_numbers(space, {{"a", 1.5}}, whole_alone).find("\"integer\": true"),
            std::string::npos);
  EXPECT_EQ(wants_whole_numbers(space, {{"a", 1.5}}, [](const Assignment&) { return true; }), "");
  EXPECT_EQ(wants_whole_numbers(space, {{"a", 1.5}}, [](const Assignment&) { return false; }), "");
}

TEST(RunName, SaysWhatDiffersAndTellsKeysApart) {
  const std::vector<std::string> keys = {"model.embed_dim", "optimizer.learning_rate"};
  EXPECT_EQ(run_name({{"optimizer.learning_rate", 0.001}, {"model.embed_dim", 96}}, keys),
            "embed_dim=96,learning_rate=0.001");
  EXPECT_EQ(run_name({{"a.type", "x"}, {"b.type", "y"}}, {"a.type", "b.type"}), "a.type=x,b.type=y");
  EXPECT_EQ(run_name({}, keys), "base");
}

TEST(RunName, IsAlwaysAFolderOfItsOwn) {
  const std::vector<std::string> keys = {"k"};
  const std::vector<Json> values = {
      "../../etc",          "a/b", "ab", Json::array({2, 1}), "2x1", 1, "1", std::string(300, 'a'),
      std::string(301, 'a')};
  std::vector<std::string> names;
  for (const Json& value : values) {
    names.push_back(run_name({{"k", value}}, keys));
    EXPECT_EQ(names.back().find('/'), std::string::npos) << names.back();
    EXPECT_NE(names.back().front(), '.');
    EXPECT_LE(names.back().size(), 200U);
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

}  // namespace
}  // namespace jigsaw
