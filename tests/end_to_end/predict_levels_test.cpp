// Forecasts of which only some levels are written.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "end_to_end/trained_forecasts.h"
#include "io/netcdf_writer.h"

namespace jigsaw::e2e {
namespace predict_levels_test {

constexpr std::size_t kRows = 8, kColumns = 12, kPoints = kRows * kColumns, kTimes = 28;
constexpr std::size_t kFirstValid = 20;
const std::vector<double> kPascals = {100000, 85000, 50000, 30000};

/// What a variable holds on a level (its number in kPascals), as float.
double state(double base, std::size_t level, std::size_t time, std::size_t point) {
  const auto t = static_cast<double>(time), i = static_cast<double>(point), l = static_cast<double>(level);
  return static_cast<float>(base * (1 + 0.1 * l) + (3 + l) * std::sin(0.3 * t + 0.7 * i + l) +
                            std::cos(1.7 * i * (l + 1)));
}
constexpr double kT = 250, kZ = 500, kT2m = 280;

/// Seven days from 2021-01-01 on, every six hours; t and z on levels, t2m without. Rows from north to south,
/// or the same states the other way round.
void write_states(const std::string& path, bool northward = false) {
  testing::NetcdfWriter file(path);
  const int time = file.dimension("time", kTimes), plev = file.dimension("plev", kPascals.size()),
            lat = file.dimension("latitude", kRows), lon = file.dimension("longitude", kColumns);
  const int times = file.variable("time", NC_DOUBLE, {time}),
            levels = file.variable("plev", NC_DOUBLE, {plev}),
            lats = file.variable("latitude", NC_DOUBLE, {lat}),
            lons = file.variable("longitude", NC_DOUBLE, {lon}),
            t = file.variable("t", NC_FLOAT, {time, plev, lat, lon}),
            z = file.variable("z", NC_FLOAT, {time, plev, lat, lon}),
            t2m = file.variable("t2m", NC_FLOAT, {time, lat, lon});
  file.text(times, "units", "hours since 2021-01-01");
  file.text(levels, "units", "Pa");
  file.text(lats, "units", "degrees_north");
  file.text(lons, "units", "degrees_east");
  file.end();
  std::vector<double> hours, rows, columns;
  for (std::size_t i = 0; i < kTimes; ++i) hours.push_back(6 * static_cast<double>(i));
  for (std::size_t i = 0; i < kRows; ++i) rows.push_back(50 - 5 * static_cast<double>(i));
  for (std::size_t i = 0; i < kColumns; ++i) columns.push_back(5 * static_cast<double>(i));
  if (northward) std::ranges::reverse(rows);
  const auto states = [&](double base, std::size_t count) {
    std::vector<double> values;
    for (std::size_t step = 0; step < kTimes; ++step)
      for (std::size_t level = 0; level < count; ++level)
        for (std::size_t i = 0; i < kPoints; ++i) {
          const std::size_t row = i / kColumns,
                            place = northward ? (kRows - 1 - row) * kColumns + i % kColumns : i;
          values.push_back(state(base, level, step, place));
        }
    return values;
  };
  file.put(times, hours);
  file.put(levels, kPascals);
  file.put(lats, rows);
  file.put(lons, columns);
  file.put(t, states(kT, kPascals.size()));
  file.put(z, states(kZ, kPascals.size()));
  file.put(t2m, states(kT2m, 1));
}

/// Of all starts and leads the fields on one of so many levels.
std::vector<double> on_level(const std::vector<double>& values, std::size_t level, std::size_t levels) {
  std::vector<double> found;
  for (std::size_t first = level * kPoints; first < values.size(); first += levels * kPoints) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first);
    found.insert(found.end(), begin, begin + kPoints);
  }
  return found;
}

class PredictLevels : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryFolder>();
    write_states(*folder_ / "states.nc");
    // Against the order of the file's levels.
    const Json config = {
        {"data",
         {{"files", {*folder_ / "states.nc"}},
          {"variables",
           {{{"name", "t"}, {"levels", {300, 850, 500}}}, "t2m", {{"name", "z"}, {"levels", {500, 850}}}}},
          {"forcings", {"latitude"}},
          {"train", {"2021-01-01", "2021-01-05"}},
          {"valid", {"2021-01-06", "2021-01-07"}}}},
        {"model", small_mixer(16)},
        {"optimizer", {{"learning_rate", 5e-3}}},
        {"train", {{"steps", 10}, {"batch_size", 3}, {"precision", "fp64"}}},
        {"validation", {{"every", 10}}},
        {"checkpoint", {{"every", 10}}}};
    folder_->write("config.json", config.dump());
    const Outcome outcome =
        run(1, "--config " + (*folder_ / "config.json") + " --set output=" + (*folder_ / "run"));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static std::string path(const std::string& name) { return *folder_ / name; }

  static Outcome predict(int ranks, const std::string& output, const std::string& more) {
    return run(ranks, "predict --config " + path("config.json") + " --checkpoint " + path("run") +
                          " --overwrite --output " + path(output) + " " + more);
  }

 private:
  inline static std::unique_ptr<TemporaryFolder> folder_;
};

/// As forecasts have them.
TEST_F(PredictLevels, MapsOfAClimateHaveTheLevelsOfTheFile) {
  const Outcome outcome =
      run(2, "evaluate --config " + path("config.json") + " --checkpoint " + path("run") +
                 " --set 'mesh={\"domain\":[1,2]}' --climate all --maps " + path("maps.nc"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  ASSERT_EQ(predict(1, "valid.nc", "--period valid").exit_code, 0);
  const NetcdfReader maps(path("maps.nc")), forecasts(path("valid.nc"));
  EXPECT_EQ(maps.values("plev"), forecasts.values("plev"));
  EXPECT_EQ(maps.values("plev_2"), forecasts.values("plev_2"));
  for (const char* variable : {"t", "z", "t2m"}) {
    const std::vector<double> all = forecasts.values(variable),
                              mean = maps.values(std::string(variable) + "_mean");
    const std::size_t starts =
        forecasts.values("time").size() - 1;  // the last one's target is behind the period
    ASSERT_EQ(all.size(), (starts + 1) * mean.size());
    for (std::size_t i = 0; i < mean.size(); ++i) {
      double wanted = 0;
      for (std::size_t start = 0; start < starts; ++start)
        wanted += all[start * mean.size() + i] / static_cast<double>(starts);
      ASSERT_NEAR(mean[i], wanted, 1e-6 * std::abs(wanted)) << variable << i;
    }
  }
}

/// The model saw them from north to south.
TEST_F(PredictLevels, RowsOfOtherFilesStandAsTheModelSawThem) {
  write_states(path("northward.nc"), true);
  const std::string common = "--steps 2 --start 2021-01-06";
  ASSERT_EQ(predict(1, "as_trained.nc", common).exit_code, 0);
  const Outcome other = predict(2, "northward_out.nc", common + " --input " + path("northward.nc"));
  ASSERT_EQ(other.exit_code, 0) << other.err;
  const NetcdfReader as_trained(path("as_trained.nc")), northward(path("northward_out.nc"));
  for (const char* variable : {"latitude", "t", "z", "t2m"})
    EXPECT_EQ(northward.values(variable), as_trained.values(variable)) << variable;
  const Outcome resumed =
      run(1, "--config " + path("config.json") + " --set output=" + path("run") +
                 " --set train.steps=12 --set 'data.files=[\"" + path("northward.nc") + "\"]'");
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  // A model that begins with these parameters sees what they saw, too.
  const auto loss_of_first_step = [&](const std::string& name, const std::string& file) {
    const Outcome tuned =
        run(1, "--config " + path("config.json") + " --set output=" + path(name) + " --init-from " +
                   path("run") + " --set train.steps=1" +
                   " --set data.normalization=auto --set 'data.files=[\"" + path(file) + "\"]'");
    EXPECT_EQ(tuned.exit_code, 0) << tuned.err;
    return series(metrics(path(name), "train"), "loss");
  };
  EXPECT_EQ(loss_of_first_step("tuned", "states.nc"), loss_of_first_step("tuned_northward", "northward.nc"));
}

TEST_F(PredictLevels, AreThoseOfTheForecastOfAllLevels) {
  for (const auto& [mesh, ranks] : {MeshCase{"{}", 1}, {R"({"tensor":2})", 2}, {R"({"domain":[1,2]})", 2}}) {
    const std::string common =
        std::string("--steps 2 --start 2021-01-06 2021-01-06T18:00 --set 'mesh=") + mesh + "' ";
    ASSERT_EQ(predict(ranks, "all.nc", common).exit_code, 0);
    ASSERT_EQ(predict(ranks, "some.nc", common + "--levels 300 850").exit_code, 0);
    ASSERT_EQ(predict(ranks, "split.nc", common + "--levels 300 850 --split-levels").exit_code, 0);
    ASSERT_EQ(predict(ranks, "one.nc", common + "--variables z --levels 500").exit_code, 0);
    const NetcdfReader all(path("all.nc")), some(path("some.nc")), split(path("split.nc")),
        one(path("one.nc"));
    const std::vector<double> t = all.values("t"), z = all.values("z"), t2m = all.values("t2m");
    EXPECT_EQ(all.values(all.dimensions("t")[2]), (std::vector<double>{85000, 50000, 30000}));
    EXPECT_EQ(all.values(all.dimensions("z")[2]), (std::vector<double>{85000, 50000}));
    EXPECT_EQ(some.values(some.dimensions("t")[2]), (std::vector<double>{85000, 30000}));
    EXPECT_EQ(some.values(some.dimensions("z")[2]), (std::vector<double>{85000}));
    EXPECT_EQ(one.values(one.dimensions("z")[2]), (std::vector<double>{50000}));
    EXPECT_EQ(some.extents("t"), (std::vector<std::size_t>{2, 2, 2, kRows, kColumns}));
    EXPECT_EQ(some.extents("z"), (std::vector<std::size_t>{2, 2, 1, kRows, kColumns}));
    EXPECT_EQ(one.extents("z"), (std::vector<std::size_t>{2, 2, 1, kRows, kColumns}));

    const std::vector<double> some_t = some.values("t");
    EXPECT_EQ(on_level(some_t, 0, 2), on_level(t, 0, 3)) << mesh;
    EXPECT_EQ(on_level(some_t, 1, 2), on_level(t, 2, 3)) << mesh;
    EXPECT_EQ(some.values("z"), on_level(z, 0, 2)) << mesh;
    EXPECT_EQ(one.values("z"), on_level(z, 1, 2)) << mesh;
    EXPECT_EQ(split.values("t_850"), on_level(t, 0, 3)) << mesh;
    EXPECT_EQ(split.values("t_300"), on_level(t, 2, 3)) << mesh;
    EXPECT_EQ(split.values("z_850"), on_level(z, 0, 2)) << mesh;
    // What is on no level is written whatever the levels.
    EXPECT_EQ(some.values("t2m"), t2m) << mesh;
    EXPECT_EQ(split.values("t2m"), t2m) << mesh;
    for (const char* other : {"t", "z", "t_500", "z_500"}) EXPECT_FALSE(split.has(other)) << other;
    for (const char* other : {"t", "t2m"}) EXPECT_FALSE(one.has(other)) << other;
  }
}

/// As statistics and scores name it.
TEST_F(PredictLevels, ALevelIsAskedForBesideItsVariable) {
  const Outcome outcome = predict(1, "t_500.nc", "--start 2021-01-06 --variables t2m t_500");
  EXPECT_EQ(outcome.exit_code, 2);
  ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
  EXPECT_NE(
      outcome.errors()[0].find("--variables names t_500, one level of t; write --variables t --levels 500"),
      std::string::npos)
      << outcome.err;
}

TEST_F(PredictLevels, HaveTheErrorsThatValidationSays) {
  ASSERT_EQ(predict(1, "valid.nc", "--period valid --levels 850 300").exit_code, 0);
  const NetcdfReader file(path("valid.nc"));
  const std::vector<double> weights = row_weights(file.values("latitude")), t = file.values("t");
  const Json said = metrics(path("run"), "valid").back().at("metrics");
  const auto check = [&](const char* field, const std::vector<double>& forecast, double base,
                         std::size_t level) {
    constexpr std::size_t kWindows = kTimes - kFirstValid - 1;
    ASSERT_GE(forecast.size(), kWindows * kPoints);
    double squares = 0;
    for (std::size_t i = 0; i < kWindows * kPoints; ++i) {
      const double error = forecast[i] - state(base, level, kFirstValid + i / kPoints + 1, i % kPoints);
      squares += weights[i % kPoints / kColumns] * error * error / static_cast<double>(kWindows * kPoints);
    }
    EXPECT_NEAR(std::sqrt(squares) / said.at(field).at("rmse").get<double>(), 1, 1e-5) << field;
  };
  check("t_850", on_level(t, 0, 2), kT, 1);
  check("t_300", on_level(t, 1, 2), kT, 3);
  check("z_850", file.values("z"), kZ, 1);
  check("t2m", file.values("t2m"), kT2m, 0);
}

}  // namespace predict_levels_test
}  // namespace jigsaw::e2e
