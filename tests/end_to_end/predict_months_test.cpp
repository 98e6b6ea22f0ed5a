// Monthly means, whose months differ in length: init sees them, samples go from month to month, forecasts
// have the middle of their months, and persistence is that of the month before.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "end_to_end/trained_forecasts.h"
#include "io/netcdf_writer.h"

namespace jigsaw::e2e {
namespace predict_months_test {

constexpr std::size_t kRows = 9, kColumns = 12, kPoints = kRows * kColumns;
constexpr int kYears = 10, kFirstYear = 1998, kMonths = 12 * kYears;
constexpr std::array kDays = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

struct OfMonths {
  const char* calendar;
  bool leap;
  const char* stamp;  ///< where in its month a time stands

  bool even() const { return std::string(calendar) == "360_day"; }
};
void PrintTo(const OfMonths& of, std::ostream* out) {
  *out << of.calendar << " " << of.stamp;
}

/// Days from the start of the first year to that of a month, and the month's own.
std::pair<int, int> month_in(const OfMonths& of, int month) {
  int before = 0, length = 0;
  for (int m = 0; m <= month; ++m) {
    before += length;
    length = of.even() ? 30
                       : kDays[static_cast<std::size_t>(m % 12)] +
                             (of.leap && m % 12 == 1 && (kFirstYear + m / 12) % 4 == 0);
  }
  return {before, length};
}

double state(int month, std::size_t point) {
  const auto i = static_cast<double>(point);
  return static_cast<float>(280 + 8 * std::sin(0.5236 * month + 0.3 * i) + 0.05 * month + std::cos(1.7 * i));
}

void write_states(const std::string& path, const OfMonths& of) {
  testing::NetcdfWriter file(path);
  const int time = file.dimension("time", kMonths), lat = file.dimension("lat", kRows),
            lon = file.dimension("lon", kColumns);
  const int times = file.variable("time", NC_DOUBLE, {time}), lats = file.variable("lat", NC_DOUBLE, {lat}),
            lons = file.variable("lon", NC_DOUBLE, {lon}),
            tas = file.variable("tas", NC_FLOAT, {time, lat, lon});
  file.text(times, "units", "days since 1998-01-01");
  file.text(times, "calendar", of.calendar);
  file.text(lats, "units", "degrees_north");
  file.text(lons, "units", "degrees_east");
  file.text(tas, "units", "K");
  file.end();
  std::vector<double> days, rows, columns, values;
  for (int month = 0; month < kMonths; ++month) {
    const auto [begin, length] = month_in(of, month);
    const std::string stamp = of.stamp;
    days.push_back(begin + (stamp == "middle" ? 0.5 * length : stamp == "first" ? 0 : length - 1));
    for (std::size_t i = 0; i < kPoints; ++i) values.push_back(state(month, i));
  }
  for (std::size_t i = 0; i < kRows; ++i) rows.push_back(40 - 5 * static_cast<double>(i));
  for (std::size_t i = 0; i < kColumns; ++i) columns.push_back(5 * static_cast<double>(i));
  file.put(times, days);
  file.put(lats, rows);
  file.put(lons, columns);
  file.put(tas, values);
}

class PredictMonths : public ::testing::TestWithParam<OfMonths> {};

TEST_P(PredictMonths, FollowOneAnother) {
  const OfMonths& of = GetParam();
  const TemporaryFolder folder;
  write_states(folder / "states.nc", of);
  Outcome outcome = run(1, "init --data " + (folder / "states.nc") + " --output " + (folder / "config.json"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err.find("not evenly spaced"), std::string::npos) << outcome.err;
  const std::string written = read(folder / "config.json");
  for (const char* part : {"\"time_step\": \"month\"", "\"input_hours\": [-720, 0]", "\"lead_hours\": 720",
                           "\"train\": [\"1998-01-01\""})
    EXPECT_NE(written.find(part), std::string::npos) << written;
  const std::string of_run = "--config " + (folder / "config.json") +
                             " --set 'data.train=[\"1998-01-01\",\"2004-12-30\"]' --set "
                             "'data.valid=[\"2005-01-01\",\"2007-12-30\"]' --set validation.rollout=3 --set "
                             "train.epochs=1 --set train.precision=fp64 --set 'model.levels=1' ";
  outcome = run(2, of_run + "--set output=" + (folder / "run"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find(" 3 mo "), std::string::npos) << outcome.out;

  // From December of one year, and from February of a leap year, whatever day of them is named.
  const std::string model = of_run + "--checkpoint " + (folder / "run") + " ";
  outcome = run(
      1, "predict " + model + "--steps 3 --start 2006-12-30 2004-02-28 --output " + (folder / "dates.nc"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const NetcdfReader dates(folder / "dates.nc");
  EXPECT_EQ(dates.values("lead_time"), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(dates.text("lead_time", "units"), "1");
  const std::string units = dates.text("time", "units");
  EXPECT_EQ(units, "hours since 1970-01-01 00:00:00");
  const auto middle = [&](int month) {
    const auto [begin, length] = month_in(of, month);
    const double to_1998 = of.even() ? 28 * 360 : 28 * 365 + (of.leap ? 7 : 0);
    return 24 * (to_1998 + begin + 0.5 * length);
  };
  EXPECT_EQ(dates.values("time"), (std::vector<double>{middle(73), middle(107)}));
  EXPECT_EQ(dates.values("valid_time"),
            (std::vector<double>{middle(74), middle(75), middle(76), middle(108), middle(109), middle(110)}));

  // Means over months have their first moment and that behind their last as bounds.
  outcome =
      run(1, "predict " + model + "--steps 3 --mean 3 --start 2006-12-30 --output " + (folder / "mean.nc"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const NetcdfReader means(folder / "mean.nc");
  EXPECT_EQ(means.values("lead_time"), std::vector<double>{3});
  EXPECT_EQ(means.values("lead_time_bnds"), (std::vector<double>{0.5, 3.5}));
  const auto begin_of = [&](int month) {
    return middle(month) - 12.0 * static_cast<double>(month_in(of, month).second);
  };
  EXPECT_EQ(means.values("valid_time"), std::vector<double>{middle(110)});
  EXPECT_EQ(means.values("valid_time_bnds"), (std::vector<double>{begin_of(108), begin_of(111)}));
  EXPECT_EQ(means.text("tas", "cell_methods"), "lead_time: mean (interval: 1 month)");

  // Winter without December, which is the start, and spring; June is no whole summer.
  outcome = run(2, "predict " + model + "--steps 6 --mean season --start 2006-12-30 --output " +
                       (folder / "seasons.nc"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const NetcdfReader seasons(folder / "seasons.nc");
  EXPECT_EQ(seasons.values("lead_time"), (std::vector<double>{2, 5}));
  EXPECT_EQ(seasons.values("lead_time_bnds"), (std::vector<double>{0.5, 2.5, 2.5, 5.5}));
  EXPECT_EQ(seasons.values("valid_time"), (std::vector<double>{middle(109), middle(112)}));
  EXPECT_EQ(seasons.values("valid_time_bnds"),
            (std::vector<double>{begin_of(108), begin_of(110), begin_of(110), begin_of(113)}));
  outcome = run(1, "predict " + model + "--mean day --start 2006-12-30 --output " + (folder / "days.nc"));
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("--mean day is shorter than a step of 1 mo"), std::string::npos) << outcome.err;

  outcome = run(2, "evaluate " + model + "--leads 3 --json " + (folder / "scores.json"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json scores = Json::parse(read(folder / "scores.json"));
  EXPECT_EQ(scores.at("forecasts"), 36 - 3);
  const std::vector<double> weights = row_weights(dates.values("lat"));
  for (int lead = 1; lead <= 3; ++lead) {
    double mean = 0;
    for (int start = 84; start + 3 < kMonths; ++start) {
      for (std::size_t i = 0; i < kPoints; ++i) {
        const double change = state(start + lead, i) - state(start, i);
        mean += weights[i / kColumns] * change * change / static_cast<double>(kPoints) / 33;
      }
    }
    const double said =
        scores.at("scores").at("tas").at("all").at("persistence_rmse").at(lead - 1).get<double>();
    EXPECT_NEAR(said, std::sqrt(mean), 1e-5 * std::sqrt(mean)) << lead;
  }
  outcome = run(1, "check " + of_run + "--set data.lead_hours=744");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("data.lead_hours must be a multiple of 720, the hours of a month"),
            std::string::npos)
      << outcome.err;
}
INSTANTIATE_TEST_SUITE_P(
    Cases, PredictMonths,
    ::testing::Values(OfMonths{"standard", true, "middle"}, OfMonths{"noleap", false, "first"},
                      OfMonths{"proleptic_gregorian", true, "last"}, OfMonths{"360_day", false, "middle"}),
    [](const auto& of) { return std::string(of.param.stamp) + "_of_" + of.param.calendar; });

}  // namespace predict_months_test
}  // namespace jigsaw::e2e
