// Files in calendars of climate models: forecasts and scores count their days, around the end of February of
// a leap year.
#include <gtest/gtest.h>

#include <cmath>

#include "end_to_end/trained_forecasts.h"
#include "io/netcdf_writer.h"

namespace jigsaw::e2e {
namespace predict_calendars_test {

constexpr std::size_t kRows = 8, kColumns = 12, kPoints = kRows * kColumns, kLeads = 4;

/// A calendar whose years are all alike.
struct OwnCalendar {
  const char* name;
  int january, february, year;  ///< their days

  int day_of_year(int month, int day) const {
    return (month > 1 ? january : 0) + (month > 2 ? february : 0) + day;
  }
  /// Of a time in 2004, since its own 1970-01-01.
  double hours(int month, int day, int hour) const {
    return 24.0 * ((2004 - 1970) * year + day_of_year(month, day) - 1) + hour;
  }
};
void PrintTo(const OwnCalendar& calendar, std::ostream* out) {
  *out << calendar.name;
}

/// What the file holds so many times of six hours after 2004-02-01, as float.
double state(int time, std::size_t point) {
  const auto i = static_cast<double>(point);
  return static_cast<float>(280 + 6 * std::sin(0.11 * time + 0.7 * i) + 0.1 * time + std::cos(1.7 * i));
}

/// February and the first five days of March.
void write_states(const std::string& path, const OwnCalendar& calendar) {
  testing::NetcdfWriter file(path);
  const int count = 4 * (calendar.february + 5);
  const int time = file.dimension("time", static_cast<std::size_t>(count)),
            lat = file.dimension("latitude", kRows), lon = file.dimension("longitude", kColumns);
  const int times = file.variable("time", NC_DOUBLE, {time}),
            lats = file.variable("latitude", NC_DOUBLE, {lat}),
            lons = file.variable("longitude", NC_DOUBLE, {lon}),
            t2m = file.variable("t2m", NC_FLOAT, {time, lat, lon});
  file.text(times, "units", "days since 2004-02-01");
  file.text(times, "calendar", calendar.name);
  file.text(lats, "units", "degrees_north");
  file.text(lons, "units", "degrees_east");
  file.text(t2m, "units", "K");
  file.end();
  std::vector<double> days, rows, columns, values;
  for (int t = 0; t < count; ++t) {
    days.push_back(0.25 * t);
    for (std::size_t i = 0; i < kPoints; ++i) values.push_back(state(t, i));
  }
  for (std::size_t i = 0; i < kRows; ++i) rows.push_back(50 - 5 * static_cast<double>(i));
  for (std::size_t i = 0; i < kColumns; ++i) columns.push_back(5 * static_cast<double>(i));
  file.put(times, days);
  file.put(lats, rows);
  file.put(lons, columns);
  file.put(t2m, values);
}

Json config_for(const std::string& file) {
  return {{"data",
           {{"files", {file}},
            {"variables", {"t2m"}},
            {"forcings", {"latitude", "day_of_year", "cos_zenith_angle"}},
            {"input_hours", {-6, 0}},
            {"train", {"2004-02-01", "2004-02-20"}},
            {"valid", {"2004-02-27", "2004-03-02"}}}},
          {"model", small_mixer(8)},
          {"optimizer", {{"learning_rate", 5e-3}}},
          {"train", {{"steps", 10}, {"batch_size", 3}, {"precision", "fp64"}}},
          {"validation", {{"every", 10}, {"rollout", kLeads}}},
          {"checkpoint", {{"every", 10}}}};
}

/// RMSE and ACC at a lead of forecasts that start at these times of the file, against the climatology of 1 to
/// 20 February.
std::pair<double, double> scores_of(const std::vector<double>& forecast, const std::vector<int>& starts,
                                    std::size_t lead, const std::vector<double>& weights) {
  double squares = 0, correlation = 0;
  for (std::size_t window = 0; window < starts.size(); ++window) {
    const int valid = starts[window] + static_cast<int>(lead) + 1;
    double s = 0, ft = 0, ff = 0, tt = 0;
    for (std::size_t i = 0; i < kPoints; ++i) {
      double climate = 0, days = 0;
      for (int day = 0; day < 20; ++day) {
        const double weight = std::max(0.0, 1 - std::abs(valid / 4 - day) / 30.0);
        climate += weight * state(4 * day + valid % 4, i);
        days += weight;
      }
      climate /= days;
      const double w = weights[i / kColumns], f = forecast[(window * kLeads + lead) * kPoints + i],
                   t = state(valid, i);
      s += w * (f - t) * (f - t) / static_cast<double>(kPoints);
      ft += w * (f - climate) * (t - climate);
      ff += w * (f - climate) * (f - climate);
      tt += w * (t - climate) * (t - climate);
    }
    squares += s / static_cast<double>(starts.size());
    correlation += ft / std::sqrt(ff * tt) / static_cast<double>(starts.size());
  }
  return {std::sqrt(squares), correlation};
}

/// March alone is whole between 20 February and April; on two ranks, beside loops over all steps of one. It
/// goes on with April to the last bit.
void expect_monthly_means(const std::string& of_run, const TemporaryFolder& folder,
                          const OwnCalendar& calendar) {
  const int march = calendar.january, april = 30, before = 4 * (calendar.february - 19) - 2;
  const std::string command = "predict " + of_run + "--start 2004-02-20T06:00 --output ",
                    two = " --set mesh.domain=[1,2] --mean month --time-series ";
  Outcome outcome = run(
      1, command + (folder / "each.nc") + " --time-series --steps " + std::to_string(before + 4 * march + 2));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  outcome =
      run(2, command + (folder / "march.nc") + two + "--steps " + std::to_string(before + 4 * march + 2));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("--mean month leaves out " + std::to_string(before) +
                             " steps at the beginning and 2 steps at the end, of no whole month"),
            std::string::npos)
      << outcome.err;
  const NetcdfReader each(folder / "each.nc"), one(folder / "march.nc");
  const double begin = calendar.hours(3, 1, 0), end = begin + 24 * march, behind = end + 24 * april;
  EXPECT_EQ(one.text("time", "calendar"), calendar.name);
  EXPECT_EQ(one.values("time_bnds"), (std::vector<double>{begin, end}));
  EXPECT_EQ(one.values("time"), (std::vector<double>{(begin + end) / 2}));
  EXPECT_EQ(one.values("forecast_reference_time"), (std::vector<double>{calendar.hours(2, 20, 6)}));
  const std::vector<double> times = each.values("time"), states = each.values("t2m"),
                            mean = one.values("t2m");
  ASSERT_EQ(mean.size(), kPoints);
  EXPECT_EQ(times.front(), calendar.hours(2, 20, 12));
  for (std::size_t i = 0; i < kPoints; ++i) {
    double sum = 0;
    int count = 0;
    for (std::size_t t = 0; t < times.size(); ++t) {
      if (times[t] < begin || times[t] >= end) continue;
      sum += states[t * kPoints + i];
      ++count;
    }
    ASSERT_EQ(count, 4 * march);
    EXPECT_NEAR(mean[i], sum / count, 3.1e-5) << i;
  }
  const std::string more = std::to_string(4 * april + 1);
  outcome = run(2, "predict " + of_run + "--output " + (folder / "april.nc") + " --continue " +
                       (folder / "march.nc") + two + "--steps " + more);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  outcome = run(2, command + (folder / "both.nc") + two + "--steps " +
                       std::to_string(before + 4 * march + 4 * april + 1));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const NetcdfReader rest(folder / "april.nc"), both(folder / "both.nc");
  EXPECT_EQ(both.values("time_bnds"), (std::vector<double>{begin, end, end, behind}));
  EXPECT_EQ(rest.values("time_bnds"), (std::vector<double>{end, behind}));
  std::vector<double> joined = mean;
  for (const double value : rest.values("t2m")) joined.push_back(value);
  EXPECT_EQ(joined, both.values("t2m"));
}

class PredictCalendar : public ::testing::TestWithParam<OwnCalendar> {};

TEST_P(PredictCalendar, CountsItsOwnDays) {
  const OwnCalendar& calendar = GetParam();
  const TemporaryFolder folder;
  write_states(folder / "states.nc", calendar);
  folder.write("config.json", config_for(folder / "states.nc").dump());
  const std::string with_config = "--config " + (folder / "config.json") + " ",
                    of_run = with_config + "--checkpoint " + (folder / "run") + " ";
  Outcome outcome = run(1, with_config + "--set output=" + (folder / "run"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;

  // From the morning of the 28th, and from the last evening of February.
  outcome = run(1, "predict " + of_run + "--steps 4 --output " + (folder / "dates.nc") +
                       " --start 2004-02-28T06:00 2004-02-" + std::to_string(calendar.february) + "T18:00");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const NetcdfReader dates(folder / "dates.nc");
  for (const char* name : {"time", "valid_time"}) {
    EXPECT_EQ(dates.text(name, "calendar"), calendar.name);
    EXPECT_EQ(dates.text(name, "units"), "hours since 1970-01-01 00:00:00");
  }
  EXPECT_EQ(dates.values("time"),
            (std::vector<double>{calendar.hours(2, 28, 6), calendar.hours(2, calendar.february, 18)}));
  EXPECT_EQ(dates.text("lead_time", "units"), "hours");
  EXPECT_EQ(dates.values("lead_time"), (std::vector<double>{6, 12, 18, 24}));
  // Days that only the Gregorian calendar has.
  const std::string none = calendar.february == 28 ? "2004-02-29T12:00" : "2004-01-31T12:00";
  outcome = run(1, "predict " + of_run + "--output " + (folder / "none.nc") + " --start " + none);
  EXPECT_EQ(outcome.exit_code, 2);
  ASSERT_EQ(outcome.errors().size(), 1U) << outcome.err;
  EXPECT_NE(outcome.errors()[0].find("--start " + none + " is no day of the calendar of the files ("),
            std::string::npos)
      << outcome.errors()[0];
  const bool next_is_march = calendar.february == 28;
  EXPECT_EQ(dates.values("valid_time"),
            (std::vector<double>{calendar.hours(2, 28, 12), calendar.hours(2, 28, 18),
                                 next_is_march ? calendar.hours(3, 1, 0) : calendar.hours(2, 29, 0),
                                 next_is_march ? calendar.hours(3, 1, 6) : calendar.hours(2, 29, 6),
                                 calendar.hours(3, 1, 0), calendar.hours(3, 1, 6), calendar.hours(3, 1, 12),
                                 calendar.hours(3, 1, 18)}));

  outcome = run(1, "predict " + of_run + "--steps 4 --period valid --output " + (folder / "valid.nc"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const NetcdfReader file(folder / "valid.nc");
  const std::vector<double> times = file.values("time"), forecast = file.values("t2m"),
                            of_dates = dates.values("t2m");
  // From 27 February to 2 March.
  ASSERT_EQ(times.size(), static_cast<std::size_t>(4 * (calendar.february - 26 + 2)));
  std::vector<int> starts;
  for (const double time : times) {
    starts.push_back(static_cast<int>(std::llround((time - calendar.hours(2, 1, 0)) / 6)));
    EXPECT_EQ(starts.back(), 4 * 26 + static_cast<int>(starts.size()) - 1);
  }
  for (const auto& [number, start] : {std::pair{0, 4 * 27 + 1}, {1, 4 * calendar.february - 1}}) {
    const auto one = of_dates.begin() + number * static_cast<std::ptrdiff_t>(kLeads * kPoints);
    EXPECT_TRUE(
        std::equal(one, one + kLeads * kPoints,
                   forecast.begin() + (start - starts[0]) * static_cast<std::ptrdiff_t>(kLeads * kPoints)))
        << "the forecast from " << start;
  }

  expect_monthly_means(of_run, folder, calendar);

  starts.resize(starts.size() - kLeads);  // those whose last lead is in the period
  outcome = run(2, "evaluate " + of_run + "--json " + (folder / "scores.json") + " --set mesh.domain=[1,2]");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json scores = Json::parse(read(folder / "scores.json"));
  EXPECT_EQ(scores.at("periods").at(0), "2004-02-27 to 2004-03-02");
  EXPECT_EQ(scores.at("forecasts"), starts.size());
  const std::vector<double> weights = row_weights(file.values("latitude"));
  for (std::size_t lead = 0; lead < kLeads; ++lead) {
    const auto [rmse, acc] = scores_of(forecast, starts, lead, weights);
    const Json& said = scores.at("scores").at("t2m").at("all");
    EXPECT_NEAR(said.at("rmse").at(lead).get<double>(), rmse, 1e-5 * rmse) << lead;
    EXPECT_NEAR(said.at("acc").at(lead).get<double>(), acc, 1e-5) << lead;
    EXPECT_LT(acc, 0.999) << lead;
  }
}
INSTANTIATE_TEST_SUITE_P(Cases, PredictCalendar,
                         ::testing::Values(OwnCalendar{"noleap", 31, 28, 365},
                                           OwnCalendar{"360_day", 30, 30, 360}),
                         [](const auto& of) { return std::string("of_") + of.param.name; });

}  // namespace predict_calendars_test
}  // namespace jigsaw::e2e
