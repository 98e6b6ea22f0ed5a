// jigsaw-train check: what would stop a run stops it, and nothing is written.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <regex>
#include <sstream>
#include <tuple>

#include "base/text.h"
#include "end_to_end/command.h"
#include "io/netcdf_writer.h"
#include "support/small_disk.h"

namespace jigsaw::e2e {
namespace {

namespace fs = std::filesystem;

class CheckTest : public ::testing::Test {
 protected:
  CheckTest() {
    Json config = small_config(folder_);
    config["output"] = folder_ / "run";
    train_ = config["data"]["train"].dump();
    valid_ = config["data"]["valid"].dump();
    folder_.write("config.json", config.dump());
  }
  std::string arguments() const { return "check --config " + (folder_ / "config.json") + " "; }
  static void expect_one_error(const Outcome& outcome, int code, const std::string& says) {
    EXPECT_EQ(outcome.exit_code, code) << outcome.err;
    ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
    EXPECT_NE(outcome.errors()[0].find(says), std::string::npos) << outcome.err;
  }

  TemporaryFolder folder_;
  std::string train_, valid_;
};

TEST_F(CheckTest, OpensAllThatARunNeedsAndEnds) {
  for (const int ranks : {1, 2}) {
    const Outcome outcome = run(ranks, arguments());
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("checked: a run would begin"), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("samples of training"), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find(ranks == 1 ? "1 rank on 1 node" : "2 ranks on 1 node"), std::string::npos);
    EXPECT_EQ(outcome.out.find("messages within a node") != std::string::npos, ranks == 2) << outcome.out;
    EXPECT_NE(outcome.out.find("is written and seen by all ranks"), std::string::npos) << outcome.out;
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_.path()))
    EXPECT_FALSE(entry.path().filename().string().starts_with(".")) << entry.path();
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

/// What would refuse to go on does not begin; what was asked for to begin anew does.
TEST_F(CheckTest, KnowsTheRunThatItWouldGoOnFrom) {
  const std::string file = folder_ / "config.json";
  ASSERT_EQ(run(1, "--config " + file + " --set train.steps=3 --set checkpoint.every=3").exit_code, 0);
  const std::string checkpoint = folder_ / "run/checkpoints/step_00000003";
  for (const int ranks : {1, 2}) {
    const Outcome outcome = run(ranks, arguments() + "--set train.steps=5");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("checked: a run would go on from " + checkpoint + " at step 3"),
              std::string::npos)
        << outcome.out;
    expect_one_error(run(ranks, arguments() + "--set seed=7"), 2,
                     "seed (1 before, 7 now) differs from the run that is to be resumed");
  }
  for (const char* option : {"--allow-change", "--resume never"})
    EXPECT_EQ(run(1, arguments() + "--set seed=7 " + option).exit_code, 0) << option;
  fs::resize_file(checkpoint + "/rank_0000.h5", 100);
  expect_one_error(run(1, arguments()), 4, "is whole; --resume never starts anew");
  {
    Running running(1, "--config " + file + " --resume never --set train.steps=100000");
    ASSERT_TRUE(running.until([&] {
      const std::vector<pid_t> ranks = running.ranks();
      return ranks.size() == 1 &&
             read(folder_ / "run/lock").starts_with("process " + std::to_string(ranks[0]) + " ");
    }));
    expect_one_error(run(1, arguments()), 2, "is in use by another run (process ");
    running.kill_all();
  }
}

TEST_F(CheckTest, PlansForRanksThatAreNotThere) {
  const Outcome outcome =
      run(1, arguments() + "--ranks 8 --set 'mesh={\"data\":2,\"domain\":[2,1],\"tensor\":2}'");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find(R"("data":2,"domain":[2,1],"tensor":2)"), std::string::npos) << outcome.out;
  expect_one_error(run(1, arguments() + "--ranks 6 --set 'mesh={\"data\":4}'"), 2, "mesh");
  expect_one_error(run(2, arguments() + "--ranks 8"), 2, "--ranks 8");
  const Outcome started = run(2, arguments() + "--ranks 2");
  EXPECT_EQ(started.exit_code, 0) << started.err;
  EXPECT_NE(started.out.find("2 ranks on 1 node"), std::string::npos) << started.out;
}

TEST_F(CheckTest, SaysWhatWouldStopARun) {
  expect_one_error(run(2, arguments() + "--set 'data.files=[\"nowhere.nc\"]'"), 3, "nowhere.nc");
  expect_one_error(run(1, arguments() + "--set checkpoint.best=t3m.rmse"), 2, "checkpoint.best");
  expect_one_error(run(1, arguments() + "--set validation.every=1 --set checkpoint.every=1 "
                                        "--set checkpoint.best=x.y"),
                   2, "it gives loss, t2m.rmse, ");
  expect_one_error(run(1, arguments() + "--set train.steps=1000000001"), 2, "train.steps");
  expect_one_error(run(2, arguments() + "--set train.steps=null --set train.epochs=1e300"), 2,
                   " samples are more than 1000000000 steps with train.batch_size 4");
  expect_one_error(run(1, arguments() + "--ranks 4 --set 'optimizer.groups=[{\"match\":\"decodr.*\"}]'"), 2,
                   "optimizer.groups[0].match");
}

TEST_F(CheckTest, TheWorstAsTheBestIsWarnedOf) {
  const std::string best = arguments() +
                           "--set validation.every=1 --set checkpoint.every=1 --set validation.rollout=2 "
                           "--set checkpoint.best=leads.12.t2m.rmse";
  const Outcome as_it_is = run(1, best), turned = run(1, best + " --set checkpoint.best_is=highest");
  EXPECT_EQ(as_it_is.exit_code, 0) << as_it_is.err;
  EXPECT_EQ(as_it_is.err.find("checkpoint.best_is"), std::string::npos) << as_it_is.err;
  EXPECT_EQ(turned.exit_code, 0) << turned.err;
  EXPECT_NE(
      turned.err.find("checkpoint.best_is is \"highest\", and of leads.12.t2m.rmse \"lowest\" is better"),
      std::string::npos)
      << turned.err;
}

TEST_F(CheckTest, AWarmUpThatDoesNotEndIsWarnedOf) {
  const Outcome outcome =
      run(1, arguments() +
                 "--set train.steps=30 --set schedule.warmup_steps=120 --set optimizer.learning_rate=0.1");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("schedule.warmup_steps is more than all steps of the training: its last one has "
                             "25 % of the learning rate"),
            std::string::npos)
      << outcome.err;
  const Outcome ends = run(1, arguments() + "--set train.steps=30 --set schedule.warmup_steps=30");
  EXPECT_EQ(ends.err.find("warmup_steps"), std::string::npos) << ends.err;
}

TEST_F(CheckTest, WhatTheTrainingDoesNotReachIsWarnedOf) {
  const std::string scheduled = arguments() +
                                "--set 'train.rollout={\"leads\":[1,2,4],\"from\":[1,30,90]}' "
                                "--set 'schedule={\"type\":\"steps\",\"at\":[10,30,60]}' --set train.steps=";
  const Outcome outcome = run(1, scheduled + "30"), all = run(1, scheduled + "90");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(
      outcome.err.find("train.rollout has what the training does not reach, which ends with step 30: 4 leads "
                       "from step 90\n"),
      std::string::npos)
      << outcome.err;
  EXPECT_NE(
      outcome.err.find("schedule.at has what the training does not reach, which ends with step 30: 30, 60\n"),
      std::string::npos)
      << outcome.err;
  EXPECT_EQ(all.err.find("does not reach"), std::string::npos) << all.err;
}

TEST_F(CheckTest, SaysWhatGroupsOfParametersTrain) {
  const Outcome outcome = run(1, arguments() +
                                     "--set 'optimizer.groups=[{\"match\":\"*bias\",\"frozen\":true},"
                                     "{\"match\":\"encoder*\",\"learning_rate\":1e-5}]'");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string unwrapped = std::regex_replace(outcome.out, std::regex("\n  "), " ");
  std::smatch said;
  ASSERT_TRUE(std::regex_search(
      unwrapped, said,
      std::regex(
          "optimizer: ([0-9]+) parameters are trained, ([0-9]+) are frozen; \"\\*bias\": [0-9]+ tensors of "
          "([0-9]+), frozen; \"encoder\\*\": [0-9]+ tensors? of ([0-9]+), learning rate 1e-05, decay 0.01; "
          "all others: [0-9]+ tensors of ([0-9]+), learning rate 0.001, decay 0.01")))
      << outcome.out;
  const auto number = [&](std::size_t group) { return std::stoll(said[group]); };
  EXPECT_EQ(number(2), number(3));
  EXPECT_EQ(number(1), number(4) + number(5));
  EXPECT_NE(unwrapped.find(concat(", ", number(1) + number(2), " parameters\n")), std::string::npos)
      << outcome.out;
  EXPECT_EQ(run(1, arguments()).out.find("optimizer: "), std::string::npos);
}

TEST_F(CheckTest, SaysWhatTheRunIsAboutToDo) {
  const std::string changes =
      "--set 'data.valid=" + valid_ + "' --set validation.every=50 --set train.steps=30 ";
  ASSERT_EQ(run(1, "stats --config " + (folder_ / "config.json") + " --output " + (folder_ / "stats.json"))
                .exit_code,
            0);
  const Outcome outcome = run(2, arguments() + changes + "--set 'mesh={\"domain\":[2,1]}'");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) {
    const auto columns = std::ranges::count_if(line, [](char c) { return (c & 0xC0) != 0x80; });
    if (line.starts_with("statistics are") || line.starts_with("output: ")) continue;  // these name a file
    EXPECT_LE(columns, 80) << line;
  }
  const std::string unwrapped = std::regex_replace(outcome.out, std::regex("\n  "), " ");
  for (const char* said :
       {"data: ", "periods: data.train 20", "; data.valid 20", "statistics: t2m ", "model: weathermixer, ",
        " parameters", "mesh: 2 ranks, data 1 × domain0 2 × domain1 1 × tensor 1",
        "memory of each of 2 ranks: ", " for the optimizer, about ",
        " together, on rank 0; a step takes a rank up to ", "values in data.train: t2m ",
        "missing in data.train: nothing\n", "training: 30 steps with 4 samples each, ",
        "in the first batch every target value is there"}) {
    EXPECT_NE(unwrapped.find(said), std::string::npos) << said << "\n" << outcome.out;
  }
  EXPECT_EQ(outcome.said().size(), 0U) << outcome.err;
}

TEST_F(CheckTest, WarnsOfPeriodsThatAreHardlyMeant) {
  const Outcome outcome =
      run(1, arguments() +
                 "--set validation.every=50 --set train.batch_size=500 --set 'data.valid=" + train_ + "'");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("warning: data.valid overlaps data.train: "), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("warning: train.batch_size 500 is more than the "), std::string::npos)
      << outcome.err;
  const Outcome none = run(1, arguments() + "--set validation.every=50 --set data.valid=[]");
  EXPECT_NE(none.out.find("no validation runs, for data.valid names no data"), std::string::npos) << none.out;
  const Outcome idle = run(1, arguments() + "--set checkpoint.every=0 --set checkpoint.keep=7");
  EXPECT_NE(idle.err.find("warning: checkpoint.keep has no effect"), std::string::npos) << idle.err;
}

/// predict and evaluate take it: it is not said to do nothing, and what is wrong with it is one sentence.
TEST_F(CheckTest, ChecksTheValidationPeriodOfARunWithoutValidations) {
  const std::string never = arguments() + "--set validation.every=0 --set 'data.valid=";
  const Outcome wrong = run(1, never + "[\"2090-01-01\",\"2090-01-02\"]'");
  expect_one_error(wrong, 3, "data.valid (2090-01-01 to 2090-01-02) holds no window");
  EXPECT_EQ(wrong.err.find("warning"), std::string::npos) << wrong.err;
  const Outcome right = run(1, never + valid_ + "'");
  EXPECT_EQ(right.exit_code, 0) << right.err;
  EXPECT_EQ(right.err.find("no effect"), std::string::npos) << right.err;
  EXPECT_NE(right.out.find("no validation runs, for validation.every is 0"), std::string::npos) << right.out;
}

TEST_F(CheckTest, FindsThatTheOutputCannotBeWritten) {
  folder_.write("file", "");
  expect_one_error(run(2, arguments() + "--set output=" + (folder_ / "file/run")), 2,
                   "output: the run directory ");
  EXPECT_EQ(run(1, arguments() + "--set output=" + (folder_ / "deep/er/run")).exit_code, 0);
  EXPECT_FALSE(fs::exists(folder_ / "deep"));
}

/// That would take hours where there are many: statistics are those of a run before, or neutral.
TEST_F(CheckTest, ReadsNoDataInWhole) {
  const std::string once = "--set 'data.train=" + train_ + "' --set data.lead_hours=12 ";
  for (const int ranks : {1, 2}) {
    const Outcome outcome = run(ranks, arguments() + once);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("statistics are computed when a run begins; here mean 0 and deviation 1 stand "
                               "for those of 1 variable\n"),
              std::string::npos)
        << outcome.out;
    EXPECT_EQ(outcome.out.find("missing in data.train"), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("in the first batch every target value is there"), std::string::npos)
        << outcome.out;
  }
  const std::string trained =
      "--config " + (folder_ / "config.json") + " --set train.steps=1 --set output=" + (folder_ / "trained");
  ASSERT_EQ(run(1, trained + " " + once).exit_code, 0);
  const Outcome after = run(2, arguments() + once);
  EXPECT_NE(after.out.find("statistics are those that a run before computed, in "), std::string::npos)
      << after.out;
}

/// What the memory cannot hold is refused before a pass over the data: none was made, so the run after it
/// finds no statistics.
TEST_F(CheckTest, ComparesWithTheMemoryBeforeItReadsTheData) {
  const std::string once = "--config " + (folder_ / "config.json") + " --set 'data.train=" + train_ +
                           "' --set data.lead_hours=18 --set train.steps=1 ";
  for (const char* command : {"check ", "train "}) {
    expect_one_error(run(1, command + once + "--set train.batch_size=1000000000"), 2,
                     "train.batch_size 1000000000: a rank needs at least ");
  }
  const Outcome after = run(1, once);
  EXPECT_EQ(after.exit_code, 0) << after.err;
  EXPECT_EQ(after.out.find("statistics are those"), std::string::npos) << after.out;
}

TEST_F(CheckTest, AGroupTrainsAlthoughTheLearningRateIs0) {
  const std::string arguments =
      "--config " + (folder_ / "config.json") +
      " --set optimizer.learning_rate=0 --set train.steps=4 --set validation.every=4 "
      "--set optimizer.ema_decay=0 --set optimizer.weight_decay=0 --set output=";
  const Outcome still = run(1, arguments + (folder_ / "still")),
                trained = run(
                    1, arguments + (folder_ / "group") +
                           " --set 'optimizer.groups=[{\"match\":\"encoder.*\",\"learning_rate\":0.01}]'");
  ASSERT_EQ(still.exit_code, 0) << still.err;
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const auto loss = [&](const std::string& name) {
    return series(metrics(folder_ / name, "valid"), "loss").back();
  };
  EXPECT_LT(loss("group"), loss("still"));
}

TEST_F(CheckTest, StatisticsAreWrittenAsARunComputesThem) {
  const std::string config = folder_ / "config.json";
  std::string one;
  for (const int ranks : {1, 2}) {
    const std::string file = folder_ / ("stats" + std::to_string(ranks) + ".json");
    const Outcome outcome = run(ranks, "stats --config " + config + " --output " + file);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    if (ranks == 1) one = read(file);
    EXPECT_EQ(read(file), one);
  }
  EXPECT_TRUE(Json::parse(one).at("fields").contains("t2m")) << one;
  const std::string before = read(config);
  expect_one_error(run(2, "stats --config " + config + " --output " + config), 2, "holds no statistics");
  EXPECT_EQ(read(config), before);
  const std::string steps = "--set train.steps=2 --set output=";
  const std::string given = " --set data.normalization=" + (folder_ / "stats1.json");
  ASSERT_EQ(run(1, "--config " + config + " " + steps + (folder_ / "own")).exit_code, 0);
  ASSERT_EQ(run(1, "--config " + config + " " + steps + (folder_ / "given") + given).exit_code, 0);
  EXPECT_EQ(series(metrics(folder_ / "own", "train"), "loss"),
            series(metrics(folder_ / "given", "train"), "loss"));
}

TEST_F(CheckTest, RechunkedFilesTrainTheSameAndAFullDiskIsOneError) {
  const std::string config = folder_ / "config.json", copies = folder_ / "copies";
  const std::string rechunk = "rechunk --config " + config + " --ranks 4 --output ";
  const Outcome outcome = run(2, rechunk + copies);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("read"), std::string::npos) << outcome.out;
  const std::string steps = "--set train.steps=2 --set output=";
  ASSERT_EQ(run(1, "--config " + config + " " + steps + (folder_ / "own")).exit_code, 0);
  const Outcome trained = run(1, "--config " + config + " " + steps + (folder_ / "copied") +
                                     " --set 'data.files=[\"" + copies + "/*.nc\"]'");
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_EQ(series(metrics(folder_ / "own", "train"), "loss"),
            series(metrics(folder_ / "copied", "train"), "loss"));
  expect_one_error(run(1, rechunk + copies), 2, "--overwrite");
  // Files of one name stand in folders of theirs.
  int folders = 0;
  for (const auto& copy : fs::directory_iterator(copies)) {
    const fs::path year = fs::path(folder_ / "years") / std::to_string(folders++);
    fs::create_directories(year);
    fs::copy(copy.path(), year / "x.nc");
  }
  ASSERT_GT(folders, 1);
  const Outcome by_year = run(
      2, rechunk + (folder_ / "by_year") + " --set 'data.files=[\"" + (folder_ / "years/*/x.nc") + "\"]'");
  EXPECT_EQ(by_year.exit_code, 0) << by_year.err;
  for (int i = 0; i < folders; ++i)
    EXPECT_TRUE(fs::is_regular_file(folder_ / ("by_year/" + std::to_string(i) + "/x.nc"))) << i;
  folder_.write("precious", "kept");
  const std::string linked = folder_ / "linked", name = fs::directory_iterator(copies)->path().filename();
  fs::create_directories(linked);
  fs::create_symlink("../precious", fs::path(linked) / name);
  for (const char* overwrite : {"", " --overwrite"})
    expect_one_error(run(1, rechunk + linked + overwrite), 2, "is no regular file, and is not replaced");
  EXPECT_EQ(read(folder_ / "precious"), "kept");
  expect_one_error(run(1, rechunk + std::string(5000, 'n')), 2, "--output: ");
  expect_one_error(run(1, rechunk + (folder_ / "precious")), 2, "cannot be made");
  // A rank without a launcher shares a table of some megabytes with itself, unless told otherwise.
  ASSERT_EQ(setenv("PMIX_MCA_gds", "hash", 1), 0);
  const testing::SmallDisk small(4096);
  const std::string full = folder_ / "full";
  expect_one_error(run(1, rechunk + full), 4, full);
  for (const auto& left : fs::directory_iterator(full)) ADD_FAILURE() << left.path();
}

TEST_F(CheckTest, WhatCannotBeReadIsNotChecked) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  const std::string command =
      quoted(JIGSAW_TRAIN) + " " + arguments() + " > /dev/full 2> " + quoted(folder_ / "err.txt");
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 4);
  EXPECT_NE(read(folder_ / "err.txt").find("error: what goes to stdout cannot be written in whole"),
            std::string::npos);
}

/// A run ends at its statistics: so does what looks beforehand.
TEST_F(CheckTest, ATimeThatStandsTwiceMustHaveTheSameValues) {
  constexpr std::size_t kTimes = 9, kRows = 4, kColumns = 5, kPoints = kRows * kColumns;
  const auto write = [&](double more) {
    testing::NetcdfWriter file(folder_ / "twice.nc");
    const std::vector<int> dims = {file.dimension("time", kTimes), file.dimension("lat", kRows),
                                   file.dimension("lon", kColumns)};
    std::vector<int> axes;
    for (const auto& [name, units, dim] :
         {std::tuple{"time", "days since 2020-01-01", dims[0]}, std::tuple{"lat", "degrees_north", dims[1]},
          std::tuple{"lon", "degrees_east", dims[2]}})
      file.text(axes.emplace_back(file.variable(name, NC_DOUBLE, {dim})), "units", units);
    const int x = file.variable("x", NC_FLOAT, dims);
    file.end();
    std::vector<double> values(kTimes * kPoints);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<double>(i * i));
    for (std::size_t i = 0; i < kPoints; ++i) values[5 * kPoints + i] = values[4 * kPoints + i] + more;
    file.put(axes[0], {kTimes}, {0, 1, 2, 3, 4, 4, 5, 6, 7});
    file.put(axes[1], {kRows}, {40, 41, 42, 43});
    file.put(axes[2], {kColumns}, {0, 1, 2, 3, 4});
    file.put(x, {kTimes, kRows, kColumns}, values);
  };
  const std::string keys = "--config " + (folder_ / "config.json") + " --set " +
                           quoted("data.files=[\"" + (folder_ / "twice.nc") + "\"]") + " --set " +
                           quoted(R"(data.variables=["x"])") + " --set " +
                           quoted(R"(data.train=["2020-01-01","2020-01-06"])") + " --set " +
                           quoted(R"(data.valid=["2020-01-07","2020-01-08"])") +
                           " --set data.input_hours=[0] --set data.lead_hours=24 --set model.patch=[2,2]";
  write(0);
  EXPECT_EQ(run(1, "check " + keys).exit_code, 0);
  write(3);
  const Outcome trained = run(1, keys);
  expect_one_error(trained, 3, "x at 2020-01-05T00:00 stands twice in ");
  for (const int ranks : {1, 2}) {
    const Outcome checked = run(ranks, "check " + keys);
    ASSERT_EQ(checked.errors().size(), 1U) << checked.err;
    const std::string said =
        trained.errors()[0].substr(trained.errors()[0].find("x at "));  // not of which rank
    expect_one_error(checked, 3, said);
  }
  EXPECT_EQ(run(1, "check " + keys + " --set data.overlap=last").exit_code, 0);
}

/// Levels of an ocean are no pressures.
TEST_F(CheckTest, WarnsOfDepthsThatWeighAsPressures) {
  constexpr std::size_t kTimes = 8, kLevels = 2, kRows = 4, kColumns = 5;
  {
    testing::NetcdfWriter file(folder_ / "ocean.nc");
    const std::vector<int> dims = {file.dimension("time", kTimes), file.dimension("depth", kLevels),
                                   file.dimension("lat", kRows), file.dimension("lon", kColumns)};
    std::vector<int> axes;
    for (const auto& [name, units, dim] :
         {std::tuple{"time", "days since 2020-01-01", dims[0]}, std::tuple{"depth", "m", dims[1]},
          std::tuple{"lat", "degrees_north", dims[2]}, std::tuple{"lon", "degrees_east", dims[3]}})
      file.text(axes.emplace_back(file.variable(name, NC_DOUBLE, {dim})), "units", units);
    const int salt = file.variable("so", NC_FLOAT, dims);
    file.end();
    std::vector<double> values(kTimes * kLevels * kRows * kColumns);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<double>(i * i));
    file.put(axes[0], {kTimes}, {0, 1, 2, 3, 4, 5, 6, 7});
    file.put(axes[1], {kLevels}, {5, 50});
    file.put(axes[2], {kRows}, {40, 41, 42, 43});
    file.put(axes[3], {kColumns}, {0, 1, 2, 3, 4});
    file.put(salt, {kTimes, kLevels, kRows, kColumns}, values);
  }
  const std::string data = quoted("data.files=[\"" + (folder_ / "ocean.nc") + "\"]"),
                    fields = quoted(R"(data.variables=[{"name":"so","levels":[5,50]}])"),
                    dates = quoted(R"(data.train=["2020-01-01","2020-01-06"])"),
                    valid = quoted(R"(data.valid=["2020-01-06","2020-01-08"])");
  for (const char* weights : {"equal", "pressure"}) {
    const Outcome outcome =
        run(1, arguments() + "--set " + data + " --set " + fields + " --set " + dates + " --set " + valid +
                   " --set data.input_hours=[0] --set data.lead_hours=24 --set model.patch=[2,2] --set " +
                   quoted(R"(loss={"level_weights":")" + std::string(weights) + "\"}"));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    const bool warned = outcome.err.find("levels of so are depth in m") != std::string::npos;
    EXPECT_EQ(warned, std::string(weights) == "pressure") << outcome.err;
  }
}

}  // namespace
}  // namespace jigsaw::e2e
