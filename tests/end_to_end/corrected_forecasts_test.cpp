// A model that corrects forecasts of one lead of an archive, what it writes, and its scores beside those of
// the forecasts themselves.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "end_to_end/trained_forecasts.h"
#include "io/netcdf_writer.h"

namespace jigsaw::e2e {
namespace corrected_forecasts_test {

constexpr int kDays = 12, kLead = 24;
constexpr std::size_t kRows = 8, kColumns = 12, kPoints = kRows * kColumns;
constexpr double kFirst = 438288;  // hours from 1970 to 2020-01-01

double analysis(double hour, std::size_t point) {
  return 280 + 5 * std::sin(0.05 * hour + 0.2 * static_cast<double>(point));
}
/// Too warm the more, the longer ahead; by itself far from those of other leads.
double forecast(double start, double lead, std::size_t point) {
  return analysis(start + lead, point) + 0.125 * lead;
}

class CorrectedForecasts : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryFolder>();
    write_forecasts();
    write_analyses();
    const Json config = {
        {"data",
         {{"files", {path("fc.nc")}},
          {"variables", {{{"name", "t2m"}, {"lead", kLead}}}},
          {"diagnostic", {{{"name", "t2m_an"}, {"data_set", "t2m"}, {"files", {path("an.nc")}}}}},
          {"lead_hours", 0},
          {"train", {"2020-01-02", "2020-01-08"}},
          {"valid", {"2020-01-09", "2020-01-11"}}}},
        {"model", small_mixer(8)},
        {"train", {{"steps", 2}, {"batch_size", 2}}},
        {"validation", {{"every", 0}}},
        {"checkpoint", {{"every", 2}}}};
    folder_->write("config.json", config.dump());
    const Outcome outcome = run(2, "--config " + path("config.json") + " --set output=" + path("run"));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static std::string path(const std::string& name) { return *folder_ / name; }
  static void write_text(const std::string& name, const std::string& text) { folder_->write(name, text); }
  /// The scores of t2m_an over the whole grid.
  static Json scores(const std::string& of) {
    const Outcome outcome = run(1, "evaluate --config " + path("config.json") + " --overwrite --json " +
                                       path("scores.json") + " " + of);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return Json::parse(read(path("scores.json"))).at("scores").at("t2m_an").at("all");
  }

 private:
  /// As cfgrib writes an archive: by start, each day at 00 and 12, and lead.
  static void write_forecasts() {
    testing::NetcdfWriter file(path("fc.nc"));
    const std::vector<double> leads = {6, kLead, 36};
    std::vector<double> starts, values;
    for (int start = 0; start < 24 * kDays; start += 12) starts.push_back(kFirst + start);
    const int time = file.dimension("time", starts.size()), step = file.dimension("step", leads.size());
    const auto [lat, lon] = add_grid(file);
    const int times = file.variable("time", NC_DOUBLE, {time}),
              steps = file.variable("step", NC_DOUBLE, {step}),
              field = file.variable("t2m", NC_DOUBLE, {time, step, lat, lon});
    file.text(times, "units", "hours since 1970-01-01");
    file.text(times, "standard_name", "forecast_reference_time");
    file.text(steps, "units", "hours");
    file.text(steps, "standard_name", "forecast_period");
    file.text(field, "units", "K");
    file.end();
    put_grid(file);
    for (const double start : starts) {
      for (const double lead : leads)
        for (std::size_t p = 0; p < kPoints; ++p) values.push_back(forecast(start - kFirst, lead, p));
    }
    file.put(times, starts);
    file.put(steps, leads);
    file.put(field, values);
  }
  static void write_analyses() {
    testing::NetcdfWriter file(path("an.nc"));
    std::vector<double> hours, values;
    for (int hour = 0; hour < 24 * kDays; hour += 6) hours.push_back(kFirst + hour);
    const int time = file.dimension("time", hours.size());
    const auto [lat, lon] = add_grid(file);
    const int times = file.variable("time", NC_DOUBLE, {time}),
              field = file.variable("t2m", NC_DOUBLE, {time, lat, lon});
    file.text(times, "units", "hours since 1970-01-01");
    file.text(field, "units", "K");
    file.end();
    put_grid(file);
    for (const double hour : hours)
      for (std::size_t p = 0; p < kPoints; ++p) values.push_back(analysis(hour - kFirst, p));
    file.put(times, hours);
    file.put(field, values);
  }
  static std::pair<int, int> add_grid(testing::NetcdfWriter& file) {
    const int lat = file.dimension("latitude", kRows), lon = file.dimension("longitude", kColumns);
    rows_ = file.variable("latitude", NC_DOUBLE, {lat});
    columns_ = file.variable("longitude", NC_DOUBLE, {lon});
    file.text(rows_, "units", "degrees_north");
    file.text(columns_, "units", "degrees_east");
    return {lat, lon};
  }
  static void put_grid(testing::NetcdfWriter& file) {
    std::vector<double> rows, columns;
    for (std::size_t i = 0; i < kRows; ++i) rows.push_back(60 - static_cast<double>(i));
    for (std::size_t j = 0; j < kColumns; ++j) columns.push_back(static_cast<double>(j));
    file.put(rows_, rows);
    file.put(columns_, columns);
  }

  inline static std::unique_ptr<TemporaryFolder> folder_;
  inline static int rows_ = 0, columns_ = 0;
};

TEST_F(CorrectedForecasts, SayWhenTheForecastsBeganThatTheyCorrect) {
  const std::string made = path("out.nc"), table = path("out.csv");
  write_text("places.csv", "station,latitude,longitude\nA,57,4\n");
  const std::string predict = "predict --config " + path("config.json") + " --checkpoint " + path("run") +
                              " --start 2020-01-10T00 2020-01-10T12 --overwrite --output ";
  ASSERT_EQ(run(2, predict + made).exit_code, 0);
  const NetcdfReader file(made);
  const double start = kFirst + 9 * 24;
  EXPECT_EQ(file.values("valid_time"), (std::vector<double>{start, start + 12}));
  EXPECT_EQ(file.values("time"), (std::vector<double>{start - kLead, start + 12 - kLead}));
  EXPECT_EQ(file.values("lead_time"), (std::vector<double>{kLead}));
  const Outcome points = run(1, predict + table + " --points " + path("places.csv"));
  ASSERT_EQ(points.exit_code, 0) << points.err;
  EXPECT_NE(read(table).find("2020-01-09T00:00,2020-01-10T00:00,24,"), std::string::npos) << read(table);
}

TEST_F(CorrectedForecasts, AreScoredBesideTheForecastsThemselves) {
  // Those of the lead are too warm by 3 K, at every point.
  const Json raw = scores("--predictions " + path("fc.nc"));
  EXPECT_NEAR(raw.at("bias").at(0).get<double>(), 0.125 * kLead, 1e-5);
  EXPECT_NEAR(raw.at("rmse").at(0).get<double>(), 0.125 * kLead, 1e-5);
  const Outcome made = run(1, "predict --config " + path("config.json") + " --checkpoint " + path("run") +
                                  " --period valid --overwrite --output " + path("valid.nc"));
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const Json model = scores("--checkpoint " + path("run")),
             files = scores("--predictions " + path("valid.nc"));
  for (const char* measure : {"rmse", "bias", "mae"})
    EXPECT_NEAR(files.at(measure).at(0).get<double>(), model.at(measure).at(0).get<double>(), 1e-4)
        << measure;
}

}  // namespace corrected_forecasts_test
}  // namespace jigsaw::e2e
