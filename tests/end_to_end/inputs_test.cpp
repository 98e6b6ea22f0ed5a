// A limited area with prescribed fields, a rim, transforms, ranges, derived forcings and rollouts by a
// schedule, as users run it: one function on every mesh, resumed exactly, forecast, scored, planned and
// verified.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <set>

#include "end_to_end/trained_forecasts.h"

namespace jigsaw::e2e {
namespace {

namespace fs = std::filesystem;

constexpr int kRows = 8, kColumns = 12, kSteps = 6;

class Inputs : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryFolder>();
    ASSERT_EQ(run(1, "sample-data --output " + data()).exit_code, 0);
    folder_->write("config.json", config().dump());
    const Outcome outcome = train(1, trained(), "");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_NE(
        outcome.err.find("loss.level_weights has no effect: it is \"pressure\", and no variable has levels"),
        std::string::npos)
        << outcome.err;
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static std::string data() { return *folder_ / "data"; }
  static std::string trained() { return *folder_ / "run"; }
  static std::string with_config() { return "--config " + (*folder_ / "config.json") + " "; }
  static Outcome train(int ranks, const std::string& output, const std::string& more) {
    return run(ranks, with_config() + "--set output=" + output + " " + more);
  }
  static Outcome predict(int ranks, const std::string& output, const std::string& more) {
    return run(ranks, "predict " + with_config() + "--checkpoint " + trained() + " --output " +
                          (*folder_ / output) + " " + more);
  }

  static Json config() {
    return {
        {"data",
         {{"files", {data() + "/*.nc"}},
          {"region", {{"latitude", {30, 65}}, {"longitude", {0, 55}}}},
          {"variables", {"t2m"}},
          {"diagnostic", {"z"}},
          {"forcing_variables", {"u10"}},
          {"forcings",
           {"sin_cos_latitude", "sin_cos_longitude", "cos_zenith_angle", "insolation", "local_solar_time"}},
          {"input_hours", {-6, 0}},
          {"boundary_width", 1},
          {"transforms", {{"t2m", {{"type", "log"}, {"epsilon", 2}}}, {"z", "sqrt"}, {"u10", "min_max"}}},
          {"clamp", {{"t2m", {270, 285}}}},
          {"train", {"2021-01-02", "2021-01-12"}},
          {"valid", {"2021-02-01", "2021-02-02"}}}},
        {"model",
         {{"type", "weathermixer"}, {"patch", {4, 4}}, {"embed_dim", 8}, {"depth", 1}, {"dropout", 0.1}}},
        {"loss", {{"level_weights", "pressure"}}},
        {"optimizer", {{"learning_rate", 5e-3}}},
        {"schedule", {{"type", "constant"}, {"warmup_steps", 0}}},
        {"train",
         {{"steps", kSteps},
          {"batch_size", 4},
          {"precision", "fp64"},
          {"rollout", {{"leads", {1, 3}}, {"from", {1, 4}}}}}},
        {"validation", {{"every", kSteps}}},
        {"checkpoint", {{"every", 3}}}};
  }

  static std::vector<double> losses(const std::string& output) {
    std::vector<double> found;
    for (const Json& line : metrics(output, "train")) found.push_back(line.at("loss").get<double>());
    return found;
  }

  inline static std::unique_ptr<TemporaryFolder> folder_;
};

TEST_F(Inputs, OneFunctionOnEveryMesh) {
  const std::vector<double> one = losses(trained());
  ASSERT_EQ(one.size(), static_cast<std::size_t>(kSteps));
  for (const char* mesh : {R"({"domain":[2,1]})", R"({"tensor":2})"}) {
    const std::string output = *folder_ / "mesh";
    fs::remove_all(output);
    const Outcome outcome = train(2, output, std::string("--set 'mesh=") + mesh + "'");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const std::vector<double> many = losses(output);
    ASSERT_EQ(many.size(), one.size());
    for (std::size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(many[i] / one[i], 1, 1e-10) << mesh << i;
  }
}

/// Each chunk holds the whole area: all ranks need all of them.
TEST_F(Inputs, RanksOfAMachineDecodeAChunkOnce) {
  if (!fs::exists("/proc/self/fd")) GTEST_SKIP() << "processes find each other's memory in /proc";
  const std::string files = *folder_ / "whole";
  const Outcome outcome = run(1, "rechunk " + with_config() + "--output " + files + " --ranks 1");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto fetched = [&](int ranks, const std::string& mesh) {
    const std::string output = *folder_ / "decoded";
    fs::remove_all(output);
    const Outcome trained =
        train(ranks, output, "--set 'data.files=[\"" + files + "/*.nc\"]' --set 'mesh=" + mesh + "'");
    EXPECT_EQ(trained.exit_code, 0) << trained.err;
    double bytes = 0;
    const Json summary = Json::parse(read(output + "/summary.json"));
    for (const Json& rank : summary.at("ranks")) bytes += rank.at("file_bytes_fetched").get<double>();
    return bytes;
  };
  const double alone = fetched(1, "{}");
  EXPECT_GT(alone, 0);
  EXPECT_LE(fetched(2, R"({"domain":[2,1]})"), 1.2 * alone);
  EXPECT_LE(fetched(4, R"({"domain":[2,2]})"), 1.2 * alone);
}

TEST_F(Inputs, ResumesBeforeTheScheduleGoesOnAndIsTheSame) {
  const std::string output = *folder_ / "stopped";
  ASSERT_EQ(train(1, output, "--set train.steps=3").exit_code, 0);
  const Outcome outcome = train(1, output, "");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("resumed from"), std::string::npos) << outcome.out;
  EXPECT_EQ(losses(output), losses(trained()));
}

/// The resolved one, beside which versions and a command line stand.
TEST_F(Inputs, ARunsOwnConfigurationIsTaken) {
  const std::string again = *folder_ / "again";
  const Outcome done = run(1, trained() + "/config.json"),
                anew = run(1, trained() + "/config.json --set output=" + again);
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.out.find("left to do"), std::string::npos) << done.out;
  ASSERT_EQ(anew.exit_code, 0) << anew.err;
  EXPECT_EQ(losses(again), losses(trained()));
}

/// What is only predicted need not be in the files that forecasts start from.
TEST_F(Inputs, ForecastsStartWithoutDiagnosticVariables) {
  const std::string bare = *folder_ / "bare", dates = "--steps 2 --start 2021-02-01 2021-02-03T12:00 ";
  fs::create_directory(bare);
  for (const auto& entry : fs::directory_iterator(data())) {
    const std::string copy = bare + "/" + entry.path().filename().string();
    fs::copy_file(entry.path(), copy);
    int file = 0, variable = 0;
    ASSERT_EQ(nc_open(copy.c_str(), NC_WRITE, &file), NC_NOERR);
    ASSERT_EQ(nc_inq_varid(file, "z", &variable), NC_NOERR);
    ASSERT_EQ(nc_rename_var(file, variable, "y"), NC_NOERR);
    ASSERT_EQ(nc_close(file), NC_NOERR);
  }
  ASSERT_EQ(predict(1, "with.nc", dates).exit_code, 0);
  const Outcome outcome =
      predict(2, "without.nc", dates + "--set 'mesh={\"domain\":[2,1]}' --input '" + bare + "/*.nc'");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const NetcdfReader with(*folder_ / "with.nc"), without(*folder_ / "without.nc");
  EXPECT_EQ(without.text("z", "units"), with.text("z", "units"));
  for (const char* variable : {"t2m", "z"}) {
    const std::vector<double> wanted = with.values(variable), found = without.values(variable);
    ASSERT_EQ(found.size(), wanted.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      ASSERT_NEAR(found[i], wanted[i], 1e-5 * std::abs(wanted[i])) << variable << " " << i;
  }
  // What forecasts start from is needed, and so is a truth.
  const Outcome scores = run(1, "evaluate " + with_config() + "--checkpoint " + trained() +
                                    " --set 'data.files=[\"" + bare + "/*.nc\"]'");
  EXPECT_EQ(scores.exit_code, 3);
  EXPECT_NE(scores.err.find("no variable z in "), std::string::npos) << scores.err;
}

TEST_F(Inputs, ForecastsHoldTheRimAndTheRange) {
  const std::string dates = "--steps 3 --start 2021-02-01 2021-02-03T12:00 ";
  ASSERT_EQ(predict(1, "one.nc", dates).exit_code, 0);
  const Outcome two = predict(2, "two.nc", dates + "--set 'mesh={\"domain\":[1,2]}'");
  ASSERT_EQ(two.exit_code, 0) << two.err;
  const NetcdfReader file(*folder_ / "one.nc");
  const std::vector<double> t2m = file.values("t2m"), z = file.values("z"), starts = file.values("time"),
                            latitudes = file.values("latitude"), longitudes = file.values("longitude");
  ASSERT_EQ(latitudes.size(), static_cast<std::size_t>(kRows));
  ASSERT_EQ(longitudes.size(), static_cast<std::size_t>(kColumns));
  const std::vector<double> t2m_two = NetcdfReader(*folder_ / "two.nc").values("t2m");
  const Truth truth(data(), "t2m");
  constexpr std::size_t kPoints = std::size_t{kRows} * kColumns;
  ASSERT_EQ(t2m.size(), 2 * 3 * kPoints);
  int at_ends = 0;
  for (std::size_t i = 0; i < t2m.size(); ++i) {
    const std::size_t row = i % kPoints / kColumns, column = i % kColumns, lead = i / kPoints % 3;
    EXPECT_NEAR(t2m[i], t2m_two[i], 1e-4);
    const bool rim = row == 0 || row == kRows - 1 || column == 0 || column == kColumns - 1;
    if (!rim) {
      EXPECT_GE(t2m[i], 270);
      EXPECT_LE(t2m[i], 285);
      EXPECT_FALSE(std::isnan(z[i]) || std::abs(z[i]) > 1e30);
      at_ends += t2m[i] == 270 || t2m[i] == 285 ? 1 : 0;
      continue;
    }
    // Sample data have 5 degrees, from 90 N and 0 E on.
    const auto there = static_cast<std::size_t>(std::llround((90 - latitudes[row]) / 5)) * 72 +
                       static_cast<std::size_t>(std::llround(longitudes[column] / 5));
    const auto hour = std::llround(starts[i / kPoints / 3]) + 6 * (static_cast<std::int64_t>(lead) + 1);
    EXPECT_NEAR(t2m[i], truth.at.at(hour)[there], 2e-5) << row << " " << column;
    EXPECT_TRUE(std::isnan(z[i]) || std::abs(z[i]) > 1e30) << "what nothing was learnt for is missing";
  }
  std::printf("%d of the inner values lie at an end of the range\n", at_ends);
  EXPECT_GT(at_ends, 0);
}

/// Step 4 is the first of the rollouts over three leads.
TEST_F(Inputs, ABatchIsWrittenAsTheModelIsGivenIt) {
  const std::string output = *folder_ / "batch.nc", command = "batch " + with_config() + "--output " + output;
  const Outcome outcome = run(1, command + " --step 4");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const NetcdfReader file(output);
  ASSERT_EQ(file.dimensions("input"), (std::vector<std::string>{"sample", "y", "x", "input_channel"}));
  ASSERT_EQ(file.dimensions("target"),
            (std::vector<std::string>{"lead", "sample", "y", "x", "target_channel"}));
  ASSERT_EQ(file.extents("target"), (std::vector<std::size_t>{3, 4, kRows, kColumns, 2}));
  ASSERT_EQ(file.extents("forcing")[0], 2U);
  EXPECT_EQ(file.text("target", "channels"), R"(["t2m","z"])");
  const Json names = Json::parse(file.text("input", "channels"));
  EXPECT_EQ((std::vector<Json>(names.begin(), names.begin() + 4)),
            (std::vector<Json>{"t2m", "t2m", "u10", "u10"}));
  EXPECT_EQ(file.text("", "predict"), "increment");
  const Json fields = Json::parse(file.text("", "statistics")).at("fields");
  const auto of = [&](const char* field, const char* number) {
    return fields.at(field).at(number).get<double>();
  };
  const Truth t2m(data(), "t2m"), z(data(), "z");
  const std::vector<double> times = file.values("time"), input = file.values("input"),
                            target = file.values("target");
  const std::size_t channels = file.extents("input").back();
  const auto log_of = [&](std::int64_t hour, std::size_t there) {
    return std::log(std::max(t2m.at.at(hour)[there], 0.0) + 2);
  };
  std::set<double> seen;
  for (std::size_t sample = 0; sample < times.size(); ++sample) {
    const std::int64_t hour = std::llround(times[sample] / 3600);
    seen.insert(times[sample]);
    for (std::size_t y = 0; y < kRows; ++y) {
      for (std::size_t x = 0; x < kColumns; ++x) {
        const std::size_t there = (y + 5) * 72 + x;  // from 65 N and 0 E on, every 5 degrees
        const std::size_t point = (sample * kRows + y) * kColumns + x;
        for (const std::size_t back : {0, 1}) {
          const double state = log_of(hour - 6 + 6 * static_cast<std::int64_t>(back), there);
          ASSERT_NEAR(input[point * channels + back], (state - of("t2m", "mean")) / of("t2m", "deviation"),
                      1e-9);
        }
        const bool rim = y == 0 || y == kRows - 1 || x == 0 || x == kColumns - 1;
        for (std::size_t lead = 0; lead < 3; ++lead) {
          const std::int64_t then = hour + 6 * static_cast<std::int64_t>(lead + 1);
          const double* const found = &target[((lead * times.size() * kRows * kColumns) + point) * 2];
          ASSERT_EQ(std::isnan(found[0]), rim);
          ASSERT_EQ(std::isnan(found[1]), rim);
          if (rim) continue;
          const double change = log_of(then, there) - log_of(hour, there);
          ASSERT_NEAR(found[0], change / of("t2m", "increment_deviation"), 1e-9);
          const double root = std::sqrt(std::max(z.at.at(then)[there], 0.0));
          ASSERT_NEAR(found[1], (root - of("z", "mean")) / of("z", "deviation"), 1e-9);
        }
      }
    }
  }
  EXPECT_EQ(seen.size(), 4U);
  // The same samples in parts.
  ASSERT_EQ(run(1, command + " --overwrite --step 4 --set train.accumulate=2").exit_code, 0);
  const NetcdfReader parts(output);
  EXPECT_EQ(parts.values("time"), times);
  EXPECT_EQ(parts.values("input"), input);
  EXPECT_EQ(parts.values("forcing"), file.values("forcing"));
  ASSERT_EQ(run(1, command + " --overwrite --valid-batch 1").exit_code, 0);
  EXPECT_EQ(NetcdfReader(output).values("time")[0], 18659 * 86400.0);  // 2021-02-01
  for (const auto& [ranks, more, says] : {std::tuple{1, "", "--overwrite"},
                                          {1, " --overwrite --valid-batch 99", "is behind the last"},
                                          {2, " --overwrite", "is for one rank"}}) {
    const Outcome refused = run(ranks, command + more);
    EXPECT_EQ(refused.exit_code, 2) << refused.err;
    ASSERT_EQ(refused.errors().size(), 1U) << refused.err;
    EXPECT_NE(refused.errors()[0].find(says), std::string::npos) << refused.err;
  }
}

TEST_F(Inputs, EvaluateSaysWhatValidationSaid) {
  const Outcome outcome = run(
      1, "evaluate " + with_config() + "--checkpoint " + trained() + " --json " + (*folder_ / "scores.json"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json found = Json::parse(read(*folder_ / "scores.json")), valid = metrics(trained(), "valid").back();
  for (const char* variable : {"t2m", "z"}) {
    for (std::size_t lead = 0; lead < 3; ++lead) {
      const Json& said =
          lead == 0 ? valid.at("metrics") : valid.at("leads").at(std::to_string(6 * (lead + 1)));
      for (const char* measure : {"rmse", "bias", "persistence_rmse"}) {
        const double wanted = said.at(variable).at(measure).get<double>();
        const double value = found.at("scores").at(variable).at("all").at(measure).at(lead).get<double>();
        EXPECT_NEAR(value, wanted, 1e-9 * std::abs(wanted) + 1e-12) << variable << measure << lead;
      }
    }
  }
  // The rim of one point does not count: rows of 5 degrees from 65 to 30, each as wide as its cells.
  const auto area = [](double south, double north) {
    return std::sin(north * std::acos(-1) / 180) - std::sin(south * std::acos(-1) / 180);
  };
  const double inner = area(32.5, 62.5) * (kColumns - 2), all = area(27.5, 67.5) * kColumns;
  EXPECT_NEAR(found.at("scores").at("t2m").at("all").at("scored").at(1).get<double>(), inner / all, 1e-9);
  EXPECT_NE((outcome.out + outcome.err).find(", scored on "), std::string::npos)
      << outcome.out << outcome.err;
}

TEST_F(Inputs, IsPlannedAndVerified) {
  const Outcome plan = run(1, "plan " + with_config() + "--ranks 4");
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
  const Outcome verified =
      run(1, "verify " + with_config() + "--ranks 2 --steps 1 --set output=" + (*folder_ / "v"));
  EXPECT_EQ(verified.exit_code, 0) << verified.err << verified.out;
}

TEST_F(Inputs, WarnsOfWhatIsPrescribedAndEndsBeforeThePeriod) {
  const std::string january = R"([{"name":"u10","files":[")" + data() + R"(/sample_2021-01.nc"]}])";
  for (const char* between : {"exact", "latest"}) {
    const Outcome outcome =
        run(1, "check " + with_config() + "--set output=" + (*folder_ / "early") +
                   " --set 'data.forcing_variables=" + january + "' --set data.forcing_times=" + between +
                   R"( --set 'data.train=["2021-01-02","2021-02-05"]')"
                   R"( --set 'data.valid=["2021-01-20","2021-01-31"]')");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_NE(outcome.err.find(
                  "warning: data.train (2021-01-02 to 2021-02-05) is not covered by u10 of "
                  "data.forcing_variables, there from 2021-01-02T00:00 to 2021-01-31T18:00 of it; windows "),
              std::string::npos)
        << outcome.err;
    EXPECT_EQ(outcome.err.find("data.valid (2021-01-20 to 2021-01-31) "), std::string::npos) << outcome.err;
  }
}

TEST_F(Inputs, SaysWhatDoesNotFit) {
  const auto refused = [&](const Outcome& outcome, int code, const std::string& says) {
    EXPECT_EQ(outcome.exit_code, code) << outcome.err << outcome.out;
    ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
    EXPECT_NE(outcome.errors()[0].find(says), std::string::npos) << outcome.err;
  };
  // The files end with February.
  refused(predict(1, "late.nc", "--steps 3 --start 2021-02-28T12:00"), 3, "needs t2m at 2021-03-01T00:00");
  refused(predict(1, "other.nc", "--start 2021-02-01 --set data.transforms.z=standard"), 4,
          "data.transforms.z");
  refused(train(1, *folder_ / "other", "--init-from " + trained() + " --set data.transforms.z=standard"), 3,
          "are of the transform sqrt(x), and data.transforms says standard");
  refused(train(1, *folder_ / "wide", "--set data.boundary_width=4"), 2, "leaves nothing inside");
}

}  // namespace
}  // namespace jigsaw::e2e
