// A step whose loss or gradient is not finite is skipped by all ranks together; too many in a row end the run
// with the last good checkpoint in place.
#include <gtest/gtest.h>
#include <netcdf.h>

#include <algorithm>
#include <set>

#include "end_to_end/command.h"

namespace jigsaw::e2e {
namespace {

namespace fs = std::filesystem;

class SkipTest : public ::testing::Test {
 protected:
  std::string arguments(const std::string& name) const {
    return "--config " + (folder_ / "config.json") + " --set output=" + (folder_ / name) + " ";
  }
  /// Steps whose loss is null.
  std::set<int> skipped(const std::string& name) const {
    std::set<int> steps;
    for (const Json& line : metrics(folder_ / name, "train")) {
      if (line.at("loss").is_null() || line.at("grad_norm").is_null())
        steps.insert(line.at("step").get<int>());
    }
    return steps;
  }

  TemporaryFolder folder_;
};

/// Multiplies what a file's variables stand for, so that they are no float32 any more.
void poison(const std::string& path) {
  int file = 0, variable = 0;
  ASSERT_EQ(nc_open(path.c_str(), NC_WRITE, &file), NC_NOERR);
  ASSERT_EQ(nc_inq_varid(file, "t2m", &variable), NC_NOERR);
  const double scale = 1e60;
  ASSERT_EQ(nc_put_att_double(file, variable, "scale_factor", NC_DOUBLE, 1, &scale), NC_NOERR);
  ASSERT_EQ(nc_close(file), NC_NOERR);
}

TEST_F(SkipTest, BatchesThatAreNotFiniteAreSkippedAlikeOnEveryMesh) {
  ASSERT_EQ(run(1, "sample-data --output " + (folder_ / "data")).exit_code, 0);
  Json config = small_config(folder_);
  config["data"]["files"] = {folder_ / "data/*.nc"};
  config["data"]["train"] = {"2021-01-10", "2021-01-31"};
  config["data"].erase("valid");
  config["model"]["patch"] = {5, 7};
  config["train"] = {{"steps", 60}, {"batch_size", 2}, {"max_skipped", 20}};
  config["checkpoint"] = {{"every", 10}};
  folder_.write("config.json", config.dump());
  ASSERT_EQ(run(1, arguments("good") + "--set train.steps=1").exit_code, 0);
  // The statistics of good data, and a period that ends in bad ones.
  const std::string manifest = read(folder_ / "good/checkpoints/step_00000001/manifest.json");
  folder_.write("statistics.json", Json::parse(manifest).at("extra").at("statistics").dump());
  std::string bad;
  for (const auto& entry : fs::directory_iterator(folder_ / "data"))
    bad = std::max(bad, entry.path().string());
  poison(bad);
  const std::string ways = "--set 'data.train=[\"2021-01-10\",\"2021-02-03\"]' --set data.normalization=" +
                           (folder_ / "statistics.json") + " ";
  const Outcome one = run(1, arguments("one") + ways);
  ASSERT_EQ(one.exit_code, 0) << one.err;
  const std::set<int> steps = skipped("one");
  ASSERT_GT(steps.size(), 3U);
  EXPECT_LT(steps.size(), 40U);
  for (const int step : steps)
    EXPECT_NE(one.err.find("step " + std::to_string(step) + " is skipped: "), std::string::npos) << one.err;
  EXPECT_NE(one.err.find("; --find-nan names the operation where that begins\n"), std::string::npos)
      << one.err;
  // Fewer steps than may be skipped, and all of them are.
  const Outcome none = run(
      2, arguments("none") + ways + "--set 'data.train=[\"2021-02-01\",\"2021-02-03\"]' --set train.steps=4");
  EXPECT_EQ(none.exit_code, 5) << none.err;
  ASSERT_EQ(none.errors().size(), 1U) << none.err;
  EXPECT_NE(none.errors()[0].find("not finite in 4 steps in a row, up to step 4"), std::string::npos)
      << none.err;
  const Outcome found =
      run(1, arguments("found") + ways + "--find-nan --set train.steps=" + std::to_string(*steps.rbegin()));
  EXPECT_NE(found.err.find(" is skipped: "), std::string::npos) << found.err;
  EXPECT_EQ(found.err.find("; --find-nan names"), std::string::npos) << found.err;
  for (const char* mesh : {R"({"domain":[2,1]})", R"({"tensor":2})", R"({"data":2})"}) {
    const Outcome two = run(2, arguments("two") + ways + "--resume never --set 'mesh=" + mesh + "'");
    ASSERT_EQ(two.exit_code, 0) << mesh << two.err;
    EXPECT_EQ(skipped("two"), steps) << mesh;
  }
  // Going on in the middle skips what is left alike.
  ASSERT_EQ(
      run(2, arguments("two") + ways + "--resume " + (folder_ / "two/checkpoints/step_00000050")).exit_code,
      0);
  EXPECT_EQ(skipped("two"), steps);
  std::printf("%zu of 60 steps skipped, the same on one rank and on three meshes of two\n", steps.size());
}

/// Makes a file's variable missing at its first times.
void make_missing(const std::string& path, std::size_t times) {
  int file = 0, variable = 0, dimensions[3] = {};
  std::size_t rows = 0, columns = 0;
  short missing = 0;
  ASSERT_EQ(nc_open(path.c_str(), NC_WRITE, &file), NC_NOERR);
  ASSERT_EQ(nc_inq_varid(file, "t2m", &variable), NC_NOERR);
  ASSERT_EQ(nc_get_att_short(file, variable, "_FillValue", &missing), NC_NOERR);
  ASSERT_EQ(nc_inq_vardimid(file, variable, dimensions), NC_NOERR);
  ASSERT_EQ(nc_inq_dimlen(file, dimensions[1], &rows), NC_NOERR);
  ASSERT_EQ(nc_inq_dimlen(file, dimensions[2], &columns), NC_NOERR);
  const std::size_t first[] = {0, 0, 0}, count[] = {times, rows, columns};
  const std::vector<short> values(times * rows * columns, missing);
  ASSERT_EQ(nc_put_vara_short(file, variable, first, count, values.data()), NC_NOERR);
  ASSERT_EQ(nc_close(file), NC_NOERR);
}

TEST_F(SkipTest, SamplesWithoutAnyPointAreSaidOnce) {
  ASSERT_EQ(run(1, "sample-data --output " + (folder_ / "data")).exit_code, 0);
  Json config = small_config(folder_);
  config["data"]["files"] = {folder_ / "data/*.nc"};
  config["data"].erase("valid");
  config["model"]["patch"] = {5, 7};
  config["train"] = {{"steps", 6}, {"batch_size", 8}};
  std::string first;
  for (const auto& entry : fs::directory_iterator(folder_ / "data")) {
    const std::string path = entry.path().string();
    if (first.empty() || path < first) first = path;
  }
  make_missing(first, 6);
  config["data"]["train"] = {"2021-01-01", "2021-01-07"};  // an epoch is about three batches
  folder_.write("config.json", config.dump());
  for (const char* mesh : {R"({"domain":[2,1]})", R"({"data":2})"}) {
    const Outcome outcome = run(2, arguments("run") + "--resume never --set 'mesh=" + mesh + "'");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const std::vector<std::string> said = outcome.said();
    EXPECT_EQ(std::count_if(said.begin(), said.end(),
                            [](const std::string& line) {
                              return line.find("no valid target point") != std::string::npos;
                            }),
              1)
        << outcome.err;
  }
}

/// With statistics that are given, no pass over the data finds that a target is missing throughout.
TEST_F(SkipTest, TrainingWithoutAnyValidPointIsAnErrorAndOneTargetWithoutIsSaid) {
  ASSERT_EQ(run(1, "sample-data --output " + (folder_ / "data")).exit_code, 0);
  Json config = small_config(folder_);
  config["data"]["files"] = {folder_ / "data/*.nc"};
  config["data"].erase("valid");
  config["data"]["variables"] = {"t2m", "u10"};
  config["data"]["train"] = {"2021-01-01", "2021-01-03"};
  config["model"]["patch"] = {5, 7};
  config["train"] = {{"steps", 50}, {"batch_size", 4}};
  folder_.write("config.json", config.dump());
  const std::string statistics = folder_ / "statistics.json";
  ASSERT_EQ(run(1, "stats --config " + (folder_ / "config.json") + " --output " + statistics).exit_code, 0);
  make_missing(folder_ / "data/sample_2021-01.nc", 40);
  config["data"]["normalization"] = statistics;
  folder_.write("config.json", config.dump());

  const Outcome one_of_two = run(2, arguments("two") + "--set train.steps=3");
  EXPECT_EQ(one_of_two.exit_code, 0) << one_of_two.err;
  EXPECT_NE(one_of_two.err.find("warning: what was read of the first batch has no value of the target t2m\n"),
            std::string::npos)
      << one_of_two.err;

  const std::string alone = "--resume never --set 'data.variables=[\"t2m\"]' --set train.steps=";
  for (const int steps : {2, 50}) {
    const Outcome outcome = run(2, arguments("one") + alone + std::to_string(steps));
    EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
    ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
    EXPECT_NE(outcome.errors()[0].find(": no target of any batch has a valid point"), std::string::npos)
        << outcome.err;
    EXPECT_EQ(outcome.errors()[0].find("up to step 50"), std::string::npos) << "after two passes it ends";
  }
}

TEST_F(SkipTest, TooManyInARowEndWithExitCode5AndTheLastGoodCheckpoint) {
  Json config = small_config(folder_);
  config["train"] = {{"steps", 100}, {"batch_size", 4}, {"max_skipped", 3}};
  config["checkpoint"] = {{"every", 1}, {"keep", 1}};
  config["optimizer"] = {{"learning_rate", 1e30}, {"clip_norm", 0}};
  config["schedule"] = {{"type", "constant"}, {"warmup_steps", 0}};
  folder_.write("config.json", config.dump());
  const Outcome outcome = run(2, arguments("run"));
  EXPECT_EQ(outcome.exit_code, 5) << outcome.err;
  ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
  EXPECT_NE(outcome.errors()[0].find("not finite in 4 steps in a row, up to step "), std::string::npos)
      << outcome.err;
  const std::set<int> steps = skipped("run");
  EXPECT_EQ(steps.size(), 4U);
  const std::string newest = read(folder_ / "run/checkpoints/latest");
  EXPECT_EQ(std::stoi(newest.substr(5)), *steps.begin() - 1) << newest;
  const std::string checkpoints = folder_ / "run/checkpoints";
  const Outcome inspected = run(1, "inspect " + checkpoints);
  EXPECT_EQ(inspected.exit_code, 0) << inspected.err;
  EXPECT_EQ(run(1, "inspect " + checkpoints + " " + checkpoints).out, inspected.out + inspected.out);
}

}  // namespace
}  // namespace jigsaw::e2e
