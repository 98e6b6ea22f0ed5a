// Training, forecasts and scores of running sums that the run makes differences of, beside those of files
// that hold the differences.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "end_to_end/trained_forecasts.h"
#include "io/netcdf_writer.h"

namespace jigsaw::e2e {
namespace deaccumulate_test {

constexpr int kHours = 96, kLeads = 2;
constexpr std::size_t kRows = 8, kColumns = 12, kPoints = kRows * kColumns;

/// What falls in the hour that ends then; sums of it are exact.
double rate(int hour, std::size_t point) {
  return (hour * hour * 7 + static_cast<int>(point * point) * 5) % 13 / 8.0;
}

/// As ERA5-Land has it.
double since_midnight(int hour, std::size_t point) {
  double sum = 0;
  for (int h = (hour - 1) / 24 * 24 + 1; h <= hour; ++h) sum += rate(h, point);
  return sum;
}

/// t2m and tp from an hour of 2020-01-01 on.
void write(const std::string& path, int first, double (*value)(int, std::size_t)) {
  testing::NetcdfWriter file(path);
  const int time = file.dimension("time", static_cast<std::size_t>(kHours - first)),
            lat = file.dimension("latitude", kRows), lon = file.dimension("longitude", kColumns);
  const int times = file.variable("time", NC_DOUBLE, {time}),
            lats = file.variable("latitude", NC_DOUBLE, {lat}),
            lons = file.variable("longitude", NC_DOUBLE, {lon}),
            t2m = file.variable("t2m", NC_DOUBLE, {time, lat, lon}),
            tp = file.variable("tp", NC_DOUBLE, {time, lat, lon});
  file.text(times, "units", "hours since 2020-01-01");
  file.text(lats, "units", "degrees_north");
  file.text(lons, "units", "degrees_east");
  file.text(t2m, "units", "K");
  file.text(tp, "units", "m");
  file.end();
  std::vector<double> hours, rows, columns, temperatures, sums;
  for (std::size_t i = 0; i < kRows; ++i) rows.push_back(60 - static_cast<double>(i));
  for (std::size_t j = 0; j < kColumns; ++j) columns.push_back(static_cast<double>(j));
  for (int hour = first; hour < kHours; ++hour) {
    hours.push_back(hour);
    for (std::size_t p = 0; p < kPoints; ++p) {
      temperatures.push_back(280 + 5 * std::sin(0.3 * hour + 0.2 * static_cast<double>(p)));
      sums.push_back(value(hour, p));
    }
  }
  file.put(times, hours);
  file.put(lats, rows);
  file.put(lons, columns);
  file.put(t2m, temperatures);
  file.put(tp, sums);
}

class Deaccumulate : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryFolder>();
    write(path("sums.nc"), 0, since_midnight);
    write(path("steps.nc"), 1, rate);
    for (const std::string name : {"sums", "steps"}) {
      folder_->write(name + ".json", config(name).dump());
      const Outcome outcome = run(2, "--config " + path(name + ".json") + " --set output=" + path(name));
      ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    }
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static std::string path(const std::string& name) { return *folder_ / name; }

  static Json config(const std::string& name) {
    Json json = {{"data",
                  {{"files", {path(name + ".nc")}},
                   {"variables", {"t2m", "tp"}},
                   {"input_hours", {-1, 0}},
                   {"lead_hours", 1},
                   {"clamp", {{"tp", {0, nullptr}}}},
                   {"train", {"2020-01-01T01:00", "2020-01-03"}},  // what both files hold
                   {"valid", {"2020-01-04", "2020-01-04"}}}},
                 {"model", small_mixer(8)},
                 {"optimizer", {{"learning_rate", 2e-3}}},
                 {"schedule", {{"warmup_steps", 0}}},
                 {"train", {{"steps", 4}, {"batch_size", 4}, {"precision", "fp64"}}},
                 {"validation", {{"every", 4}, {"rollout", kLeads}}},
                 {"checkpoint", {{"every", 4}}}};
    if (name == "sums") json["data"]["deaccumulate"] = {{"tp", "day"}};
    return json;
  }

  static Outcome predict(const std::string& name, const std::string& output, const std::string& more) {
    return run(1, "predict --config " + path(name + ".json") + " --checkpoint " + path(name) +
                      " --overwrite --output " + path(output) + " " + more);
  }

 private:
  inline static std::unique_ptr<TemporaryFolder> folder_;
};

TEST_F(Deaccumulate, TrainsAsOnFilesOfDifferences) {
  const std::vector<double> sums = series(metrics(path("sums"), "train"), "loss"),
                            steps = series(metrics(path("steps"), "train"), "loss");
  ASSERT_EQ(sums.size(), 4U);
  EXPECT_EQ(sums, steps);
  EXPECT_EQ(metrics(path("sums"), "valid").back().at("metrics"),
            metrics(path("steps"), "valid").back().at("metrics"));
}

TEST_F(Deaccumulate, ForecastsAreOfDifferencesAndGoOnAsSuch) {
  const std::string start = "--start 2020-01-04T03 ";
  ASSERT_EQ(predict("sums", "whole.nc", start + "--steps 3").exit_code, 0);
  ASSERT_EQ(predict("steps", "same.nc", start + "--steps 3").exit_code, 0);
  ASSERT_EQ(predict("sums", "begun.nc", start + "--steps 2 --variables tp").exit_code, 0);
  const Outcome went_on = predict("sums", "rest.nc", "--continue " + path("begun.nc") + " --steps 1");
  ASSERT_EQ(went_on.exit_code, 0) << went_on.err;
  const NetcdfReader whole(path("whole.nc")), same(path("same.nc")), begun(path("begun.nc")),
      rest(path("rest.nc"));
  for (const char* variable : {"t2m", "tp"}) {
    const std::vector<double> all = whole.values(variable);
    EXPECT_EQ(all, same.values(variable)) << variable;
    ASSERT_EQ(all.size(), 3 * kPoints);
    EXPECT_EQ(rest.values(variable), std::vector<double>(all.end() - kPoints, all.end())) << variable;
  }
  // An hour each, which ends with its time; together with temperatures the file has no such bounds.
  const std::vector<double> bounds = begun.values("valid_time_bnds"), times = begun.values("valid_time");
  ASSERT_EQ(bounds.size(), 4U);
  EXPECT_EQ(bounds, (std::vector<double>{times[0] - 1, times[0], times[1] - 1, times[1]}));
  EXPECT_EQ(begun.text("tp", "cell_methods"), "time: sum");
  EXPECT_FALSE(whole.has("valid_time_bnds"));
  EXPECT_EQ(whole.text("t2m", "cell_methods"), "");
  const Outcome other = run(1, "predict --config " + path("steps.json") + " --checkpoint " + path("sums") +
                                   " --output " + path("no.nc") + " " + start);
  ASSERT_EQ(other.errors().size(), 1U) << other.err;
  EXPECT_NE(other.errors()[0].find("data.deaccumulate"), std::string::npos) << other.err;
}

/// Files with forecasts hold differences, of which none are made again.
TEST_F(Deaccumulate, ForecastsInFilesAreScoredAsTheyAre) {
  ASSERT_EQ(predict("sums", "valid.nc", "--steps 2 --period valid").exit_code, 0);
  const auto scores = [&](const std::string& of) {
    const Outcome outcome = run(1, "evaluate --config " + path("sums.json") + " --overwrite --json " +
                                       path("scores.json") + " " + of);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return Json::parse(read(path("scores.json")));
  };
  const Json model = scores("--checkpoint " + path("sums")),
             files = scores("--predictions " + path("valid.nc"));
  for (const auto& region : model.at("regions").items()) {
    for (const char* measure : {"rmse", "mae", "bias", "persistence_rmse"}) {
      for (std::size_t lead = 0; lead < kLeads; ++lead) {
        const auto of = [&](const Json& json) {
          return json.at("scores").at("tp").at(region.key()).at(measure).at(lead).get<double>();
        };
        EXPECT_NEAR(of(files), of(model), 1e-5) << region.key() << measure << lead;
        EXPECT_TRUE(measure != std::string("rmse") || of(model) > 0.01) << of(model);
      }
    }
  }
}

}  // namespace deaccumulate_test
}  // namespace jigsaw::e2e
