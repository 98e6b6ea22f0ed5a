// What is of the same time (data.lead_hours 0) on another grid (data.regrid): temperatures on a fine grid out
// of those on a coarse one and the height, of which they are a linear function, so that a model of one linear
// layer finds them if, and only if, it is given the coarse ones where they belong.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <numbers>

#include "end_to_end/command.h"
#include "io/netcdf_writer.h"
#include "support/netcdf_reader.h"

namespace jigsaw::e2e {
namespace {

using testing::NetcdfReader;
using testing::NetcdfWriter;

constexpr std::size_t kRows = 31, kColumns = 41, kPoints = kRows * kColumns;

double latitude(std::size_t i) {
  return 60 - static_cast<double>(i / kColumns);
}
double longitude(std::size_t i) {
  return -20 + static_cast<double>(i % kColumns);
}
double height(std::size_t i) {
  return 1000 + 900 * std::sin(static_cast<double>(7 * i % 101));
}

/// The value of sample data (5°, from 90° N and 0° E on) at a place.
double between(const double* state, double north, double east) {
  const double row = (90 - north) / 5, column = std::fmod(east + 360, 360) / 5;
  const auto i = static_cast<std::size_t>(row), j = static_cast<std::size_t>(column);
  const double down = row - static_cast<double>(i), along = column - static_cast<double>(j);
  const auto at = [&](std::size_t y, std::size_t x) {
    return state[std::min<std::size_t>(y, 36) * 72 + x % 72];
  };
  return (1 - down) * ((1 - along) * at(i, j) + along * at(i, j + 1)) +
         down * ((1 - along) * at(i + 1, j) + along * at(i + 1, j + 1));
}

class Downscaling : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryFolder>();
    ASSERT_EQ(run(1, "sample-data --months 1 --output " + path("data")).exit_code, 0);
    write_fine(path("fine.nc"), "tas");
    write_fine(path("heights.nc"), "");
    folder_write("config.json", config());
    const Outcome outcome = run(1, "--config " + path("config.json") + " --set output=" + path("run"));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static std::string path(const std::string& name) { return *folder_ / name; }

  static Json config() {
    return {{"data",
             {{"files", {path("data/*.nc"), path("fine.nc")}},
              {"variables", {"t2m"}},
              {"diagnostic", {"tas"}},
              {"static", {"oro"}},
              {"lead_hours", 0},
              {"regrid", {{"method", "linear"}}},
              {"train", {"2021-01-01", "2021-01-20"}},
              {"valid", {"2021-01-21", "2021-01-31"}}}},
            {"model", {{"type", "sequential"}, {"layers", {{{"type", "linear"}, {"features", 1}}}}}},
            {"optimizer", {{"learning_rate", 0.05}, {"weight_decay", 0}}},
            {"train", {{"steps", 150}, {"batch_size", 4}, {"precision", "fp64"}}},
            {"validation", {{"every", 150}}},
            {"checkpoint", {{"every", 150}}}};
  }

  /// Heights, and where it has a name the temperature at the times of the sample data.
  static void write_fine(const std::string& name, const std::string& temperature) {
    const bool targets = !temperature.empty();
    const NetcdfReader coarse(path("data/sample_2021-01.nc"));
    const std::vector<double> hours = coarse.values("time"), t2m = coarse.unpacked("t2m");
    NetcdfWriter file(name);
    const int time = file.dimension("time", hours.size()), y = file.dimension("latitude", kRows),
              x = file.dimension("longitude", kColumns);
    const int times = file.variable("time", NC_DOUBLE, {time}),
              rows = file.variable("latitude", NC_DOUBLE, {y}),
              columns = file.variable("longitude", NC_DOUBLE, {x}),
              oro = file.variable("oro", NC_DOUBLE, {y, x}),
              tas = targets ? file.variable(temperature, NC_DOUBLE, {time, y, x}) : -1;
    file.text(times, "units", coarse.text("time", "units"));
    file.text(rows, "units", "degrees_north");
    file.text(columns, "units", "degrees_east");
    file.text(oro, "units", "m");
    if (targets) file.text(tas, "units", "K");
    file.end();
    std::vector<double> north, east, heights, temperatures;
    for (std::size_t i = 0; i < kRows; ++i) north.push_back(latitude(i * kColumns));
    for (std::size_t i = 0; i < kColumns; ++i) east.push_back(longitude(i));
    for (std::size_t i = 0; i < kPoints; ++i) heights.push_back(height(i));
    for (std::size_t t = 0; t < hours.size(); ++t) {
      for (std::size_t i = 0; i < kPoints; ++i)
        temperatures.push_back(between(&t2m[t * 37 * 72], latitude(i), longitude(i)) - 0.0065 * height(i));
    }
    file.put(times, hours);
    file.put(rows, north);
    file.put(columns, east);
    file.put(oro, heights);
    if (targets) file.put(tas, temperatures);
  }

  static void folder_write(const std::string& name, const Json& json) { folder_->write(name, json.dump()); }

  static Outcome command(int ranks, const std::string& name, const std::string& more) {
    const std::string mesh =
        ranks > 1 ? " --set 'mesh={\"domain\":[" + std::to_string(ranks / 2) + ",2]}' " : " ";
    return run(ranks,
               name + " --config " + path("config.json") + " --checkpoint " + path("run") + mesh + more);
  }

 private:
  inline static std::unique_ptr<TemporaryFolder> folder_;
};

TEST_F(Downscaling, ALinearLayerFindsALinearFunction) {
  const Json line = metrics(path("run"), "valid").back();
  const Json& scores = line.at("metrics").at("tas");
  EXPECT_LT(scores.at("rmse").get<double>(), 0.05) << line;  // kelvins, of a deviation of some 10
  EXPECT_TRUE(scores.at("persistence_rmse").is_null()) << line;
}

TEST_F(Downscaling, MoreRanksDoTheSame) {
  const std::vector<double> alone = series(metrics(path("run"), "train"), "loss");
  for (const char* mesh : {"{\"domain\":[2,2]}", "{\"data\":2,\"domain\":[1,2]}", "{\"domain\":[4,1]}"}) {
    const std::string output = path("mesh");
    const Outcome outcome =
        run(4, "--config " + path("config.json") + " --set train.steps=20 --set output=" + output +
                   " --set 'mesh=" + mesh + "'");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("4 ranks"), std::string::npos) << outcome.out;
    const std::vector<double> losses = series(metrics(output, "train"), "loss");
    ASSERT_EQ(losses.size(), 20U);
    EXPECT_NEAR(losses[0], alone[0], 1e-12 * alone[0]) << mesh;
    std::filesystem::remove_all(output);
  }
}

// Times of the inputs, at lead 0; also where the files have no targets, and on other ranks.
TEST_F(Downscaling, PredictNeedsNoTargets) {
  ASSERT_EQ(command(1, "predict", "--period valid --output " + path("one.nc")).exit_code, 0);
  const std::string without = " --input " + quoted(path("data/*.nc")) + " " + path("heights.nc") + " ";
  const Outcome other = command(4, "predict", "--period valid --output " + path("other.nc") + without);
  ASSERT_EQ(other.exit_code, 0) << other.err;
  const NetcdfReader one(path("one.nc")), two(path("other.nc")), truth(path("fine.nc"));
  EXPECT_EQ(one.extents("tas"), (std::vector<std::size_t>{44, 1, kRows, kColumns}));
  EXPECT_EQ(one.text("tas", "units"), "K");
  EXPECT_EQ(two.text("tas", "units"), "K");
  EXPECT_EQ(one.values("lead_time"), std::vector<double>{0});
  EXPECT_EQ(one.values("valid_time"), one.values("time"));
  for (const char* axis : {"latitude", "longitude"}) EXPECT_EQ(two.values(axis), truth.values(axis));
  const std::vector<double> found = one.values("tas"), same = two.values("tas"), wanted = truth.values("tas");
  ASSERT_EQ(found.size(), 44 * kPoints);
  ASSERT_EQ(same.size(), found.size());
  double squares = 0, weight = 0;
  std::vector<double> rmse;
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_NEAR(found[i], same[i], 1e-4) << i;
    const double error = found[i] - wanted[80 * kPoints + i];  // from 21 January on
    const double area = std::cos(latitude(i % kPoints) * std::acos(-1.0) / 180);
    squares += area * error * error;
    weight += area;
    if (i % kPoints + 1 < kPoints) continue;
    rmse.push_back(squares / weight);
    squares = weight = 0;
  }
  double mean = 0;
  for (const double square : rmse) mean += square / static_cast<double>(rmse.size());
  const Outcome scored = command(2, "evaluate", "--json " + path("scores.json"));
  ASSERT_EQ(scored.exit_code, 0) << scored.err;
  const Json scores = Json::parse(read(path("scores.json")));
  EXPECT_EQ(scores.at("lead_hours"), Json::array({0}));
  const Json& of = scores.at("scores").at("tas").at("all");
  EXPECT_NEAR(of.at("rmse").at(0).get<double>(), std::sqrt(mean), 1e-3 * std::sqrt(mean));
  EXPECT_TRUE(of.at("persistence_rmse").at(0).is_null()) << of;
}

// A variable of the same name on both grids, in files of its own.
TEST_F(Downscaling, OneNameInTwoDataSets) {
  std::filesystem::create_directory(path("own"));
  write_fine(path("own/fine.nc"), "t2m");
  Json own = config();
  own["data"]["files"] = {path("data/*.nc"), path("heights.nc")};
  own["data"]["diagnostic"] = {{{"name", "tas"}, {"data_set", "t2m"}, {"files", {path("own/*.nc")}}}};
  own["train"]["steps"] = 5;
  folder_write("own.json", own);
  for (const int ranks : {1, 2}) {
    const std::string output = path("own_run");
    const Outcome outcome = run(ranks, "--config " + path("own.json") + " --set output=" + output);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const double loss = series(metrics(output, "train"), "loss")[0],
                 wanted = series(metrics(path("run"), "train"), "loss")[0];
    EXPECT_NEAR(loss, wanted, 1e-12 * wanted);
    if (ranks == 1) std::filesystem::remove_all(output);
  }
  // Elsewhere, without the targets' files: the grid is that of the heights.
  std::filesystem::rename(path("own"), path("moved"));
  const Outcome predicted =
      run(2, "predict --config " + path("own.json") + " --checkpoint " + path("own_run") +
                 " --start 2021-01-25 --output " + path("elsewhere.nc"));
  EXPECT_EQ(predicted.exit_code, 0) << predicted.err;
  EXPECT_EQ(NetcdfReader(path("elsewhere.nc")).extents("tas"),
            (std::vector<std::size_t>{1, 1, kRows, kColumns}));
  std::filesystem::rename(path("moved"), path("own"));
  own["data"]["diagnostic"][0]["data_set"] = "tasmax";
  folder_write("own.json", own);
  const Outcome unknown = run(1, "check --config " + path("own.json"));
  EXPECT_EQ(unknown.exit_code, 3);
  ASSERT_EQ(unknown.errors().size(), 1U) << unknown.err;
  EXPECT_NE(unknown.errors()[0].find("no variable tasmax in " + path("own/fine.nc")), std::string::npos)
      << unknown.err;
}

// What is kept of one run is not taken for the statistics of other inputs.
TEST_F(Downscaling, OtherInputsHaveStatisticsOfTheirOwn) {
  const Outcome outcome =
      run(1, "--config " + path("config.json") + " --set 'data.variables=[\"t2m\",\"u10\"]' --set " +
                 "train.steps=1 --set output=" + path("other_inputs"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

// Without a target, and without a static field, only a named grid says where the fine points are.
TEST_F(Downscaling, PredictDoesNotGuessTheGrid) {
  Json bare = config();
  bare["data"].erase("static");
  bare["train"]["steps"] = 1;
  folder_write("bare.json", bare);
  ASSERT_EQ(run(1, "--config " + path("bare.json") + " --set output=" + path("bare_run")).exit_code, 0);
  const std::string predict = "predict --config " + path("bare.json") + " --checkpoint " + path("bare_run") +
                              " --start 2021-01-25 --overwrite --output " + path("bare.nc") + " --input " +
                              quoted(path("data/*.nc"));
  const Outcome refused = run(2, predict);
  EXPECT_EQ(refused.exit_code, 4);
  ASSERT_EQ(refused.errors().size(), 1U) << refused.err;
  EXPECT_NE(refused.errors()[0].find(
                "is of a grid of [31,41] points, and the data have [37,72]; these files hold no "
                "target, whose grid is the model's"),
            std::string::npos)
      << refused.err;
  const Outcome named = run(1, predict +
                                   " --set 'data.regrid={\"method\":\"linear\",\"latitude\":[60,30,1],"
                                   "\"longitude\":[-20,20,1]}'");
  EXPECT_EQ(named.exit_code, 0) << named.err;
  EXPECT_EQ(NetcdfReader(path("bare.nc")).extents("tas"), (std::vector<std::size_t>{1, 1, kRows, kColumns}));
}

TEST_F(Downscaling, MistakesAreNamed) {
  const auto why = [](const std::string& set, int code) {
    const Outcome outcome = run(1, "check --config " + path("config.json") + " --set " + quoted(set));
    EXPECT_EQ(outcome.exit_code, code) << set;
    EXPECT_EQ(outcome.errors().size(), 1U) << outcome.err;
    return outcome.err;
  };
  const auto contains = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  contains(why("data.diagnostic=[]", 2), "data.diagnostic must name the targets where data.lead_hours is 0");
  contains(why("data.boundary_width=2", 2), "data.boundary_width must be 0 where data.lead_hours is 0");
  contains(why("train.rollout=2", 2),
           "one step (train.rollout, validation.rollout, --steps, --leads) is all");
  contains(why("data.clamp={\"t2m\":[0,null]}", 2), "data.clamp names t2m, which is no target");
  contains(why("data.regrid.method=none", 3), "; data.regrid with \"method\": \"linear\"");
  contains(why("data.regrid.variables={\"t2n\":\"nearest\"}", 2),
           "data.regrid.variables names t2n, which is no variable");
  contains(why("data.regrid={\"method\":\"linear\",\"latitude\":[60,30,7]}", 2),
           "data.regrid.latitude must be");
  contains(why("data.regrid={\"method\":\"linear\",\"latitude\":[60,30,1]}", 2),
           "data.regrid.longitude must be given");
  contains(why("data.regrid={\"latitude\":[60,30,1],\"longitude\":[0,20,1]}", 2),
           "data.regrid.method must be");
  contains(why("data.regrid={\"method\":\"linear\",\"latitude\":[60,30,1],\"longitude\":[0,360,1]}", 2),
           "of the whole globe the last is 359");
  const Outcome steps = command(1, "predict", "--steps 2 --start 2021-01-25 --output " + path("no.nc"));
  EXPECT_EQ(steps.exit_code, 2) << steps.err;
}

/// What interpolation leaves: coarse files are forecasts of the fine field, of the same time.
TEST_F(Downscaling, InterpolationIsScoredAsForecastsInFiles) {
  write_fine(path("named.nc"), "t2m");
  const std::string fine = "'data.diagnostic=[{\"name\":\"t2m_fine\",\"data_set\":\"t2m\",\"files\":[\"" +
                           path("named.nc") + "\"]}]'";
  // The truth is what lies between the coarse values, less 6.5 K for each kilometre of height.
  double sum = 0, weights = 0, squares = 0;
  for (std::size_t i = 0; i < kPoints; ++i) {
    const double weight = std::sin((latitude(i) + 0.5) * std::numbers::pi / 180) -
                          std::sin((latitude(i) - 0.5) * std::numbers::pi / 180);
    sum += weight * 0.0065 * height(i);
    squares += weight * std::pow(0.0065 * height(i), 2);
    weights += weight;
  }
  for (const int ranks : {1, 2}) {
    const Outcome outcome =
        run(ranks, "evaluate --config " + path("config.json") + " --set " + fine + " --set 'data.files=[\"" +
                       path("data/*.nc") + "\"]' --set data.static=[] --predictions '" + path("data/*.nc") +
                       "' --overwrite --json " + path("interpolation.json"));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const Json found = Json::parse(read(path("interpolation.json"))).at("scores").at("t2m_fine").at("all");
    EXPECT_NEAR(found.at("bias").at(0).get<double>(), sum / weights, 1e-4);
    EXPECT_NEAR(found.at("rmse").at(0).get<double>(), std::sqrt(squares / weights), 1e-4);
  }
}

/// The grid is that of the first target: another one that is coarser, or finer, is compared with what
/// interpolation makes of it.
TEST_F(Downscaling, TruthThatIsInterpolatedIsWarnedOf) {
  const auto warnings = [](const std::string& set) {
    return run(1, "check --config " + path("config.json") +
                      " --set model.layers[0].features=2 --set 'data.diagnostic=" + set + "'")
        .err;
  };
  EXPECT_NE(warnings(R"(["tas","u10"])").find("warning: u10 lies on another grid than the first target"),
            std::string::npos)
      << warnings(R"(["tas","u10"])");
  EXPECT_EQ(warnings(R"(["tas",{"name":"again","data_set":"tas"}])").find("lies on another grid"),
            std::string::npos);
}

}  // namespace
}  // namespace jigsaw::e2e
