// Fields that are given at times of their own: what holds between these and beyond them, and where they are
// far apart.
#include "fields/prescribed_times.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>

#include "base/error.h"
#include "base/text.h"
#include "comm/thread/run_ranks.h"
#include "fields/file_set.h"
#include "io/fixtures.h"
#include "io/netcdf_writer.h"
#include "samples/dataset.h"
#include "samples/prescribed_remarks.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace prescribed_times_test {

constexpr std::size_t kRows = 2, kColumns = 3, kPoints = kRows * kColumns;
const Box kAll{{0, 0}, {kRows, kColumns}};
const Field kState{"t2m", {}}, kSst{"sst", {}}, kCo2{"co2", {}};

/// A field [time, 2, 3], a series [time], or one [time, 1, 1], of values f(time number, point) and
/// f(time number, 0).
struct Made {
  std::string name = "sst", units = "days since 2019-01-01", calendar = "standard";
  std::vector<double> times;
  std::function<double(std::size_t, std::size_t)> value = {};
  bool series = false, point = false;
  std::string unit = "", second = "";  ///< of the field; the name of another one of these values
};

void write(const std::string& path, const Made& made) {
  testing::NetcdfWriter file(path);
  const int time = file.dimension("time", made.times.size()),
            lat = file.dimension("latitude", made.point ? 1 : kRows),
            lon = file.dimension("longitude", made.point ? 1 : kColumns);
  const int times = file.variable("time", NC_DOUBLE, {time}),
            lats = file.variable("latitude", NC_DOUBLE, {lat}),
            lons = file.variable("longitude", NC_DOUBLE, {lon}),
            field = file.variable(made.name, NC_DOUBLE,
                                  made.series ? std::vector{time} : std::vector{time, lat, lon});
  const int second = made.second.empty() ? -1 : file.variable(made.second, NC_DOUBLE, {time, lat, lon});
  file.text(field, "units", made.unit);
  file.text(times, "units", made.units);
  file.text(times, "calendar", made.calendar);
  file.text(lats, "units", "degrees_north");
  file.text(lons, "units", "degrees_east");
  file.end();
  file.put(times, made.times);
  file.put(lats, made.point ? std::vector<double>{0} : std::vector<double>{10, 20});
  file.put(lons, made.point ? std::vector<double>{0} : std::vector<double>{0, 5, 10});
  std::vector<double> values;
  for (std::size_t i = 0; i < made.times.size(); ++i)
    for (std::size_t p = 0; p < (made.series || made.point ? 1 : kPoints); ++p)
      values.push_back(made.value(i, p));
  file.put(field, values);
  if (second >= 0) file.put(second, values);
}

double any_value(std::size_t i, std::size_t p) {
  return 280 + 3 * std::sin(static_cast<double>(i) * 1.7) + static_cast<double>(p);
}

/// Days since 2019-01-01 of the middles of the months of 2019.
std::vector<double> middles() {
  std::vector<double> days;
  double first = 0;
  for (const double length : {31., 28., 31., 30., 31., 30., 31., 31., 30., 31., 30., 31.}) {
    days.push_back(first + length / 2);
    first += length;
  }
  return days;
}

std::vector<double> numbers(std::size_t count, double first = 0, double step = 1) {
  std::vector<double> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(first + step * static_cast<double>(i));
  return all;
}

/// Linear around the circle of 365 days of the months above: a search for the neighbours, one by one.
double on_circle_of_months(double day, std::size_t p) {
  const std::vector<double> days = middles();
  for (std::size_t i = 0; i < days.size(); ++i) {
    const std::size_t next = (i + 1) % days.size();
    const double from = days[i], to = next == 0 ? days[0] + 365 : days[next];
    for (const double turned : {day, day + 365}) {
      if (turned < from || turned > to) continue;
      const double part = (turned - from) / (to - from);
      return (1 - part) * any_value(i, p) + part * any_value(next, p);
    }
  }
  return std::nan("");
}

class PrescribedTimes : public ::testing::Test {
 protected:
  void SetUp() override {
    write(
        path("states.nc"),
        {.name = "t2m", .units = "hours since 2020-01-01", .times = {0, 6, 12, 18, 24}, .value = any_value});
  }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  /// The field as a data set of six-hourly states of 2020 and 2021 has it.
  std::unique_ptr<FileSet> open(const std::vector<std::string>& paths, Between between,
                                const Field& field = kSst) {
    std::vector<std::string> all = {path("states.nc")};
    all.insert(all.end(), paths.begin(), paths.end());
    auto files = std::make_unique<FileSet>(all);
    files->select(kState, true);
    files->select_prescribed(field, between);
    return files;
  }
  static std::vector<double> read(FileSet& files, Time time, const Field& field = kSst) {
    std::vector<double> plane(kPoints, -1);
    files.read(field, time, kAll, plane);
    return plane;
  }

  const testing::TemporaryFolder folder_;
};

TEST_F(PrescribedTimes, AYearIsRepeatedForEveryYear) {
  write(path("year.nc"), {.times = middles(), .value = any_value});
  const auto files = open({path("year.nc")}, Between::kCycle);
  for (const char* year : {"1993", "2019", "2020", "2021", "2050"}) {
    for (double day = 0; day < 365; day += 0.25) {
      // The date of that day of 2019, in the other year.
      const Time in_2019 = at("2019-01-01") + static_cast<Time>(day * static_cast<double>(kDay));
      const Time time = at(year + format_time(in_2019).substr(4));
      EXPECT_TRUE(files->has(kSst, time));
      const std::vector<double> found = read(*files, time);
      for (std::size_t p = 0; p < kPoints; ++p)
        ASSERT_NEAR(found[p], on_circle_of_months(day, p), 1e-9) << year << " " << day;
    }
  }
  EXPECT_EQ(read(*files, at("2020-02-29T06:00")), read(*files, at("2020-02-28T06:00")))
      << "2019 has no such day";
  EXPECT_EQ(read(*files, at("2024-01-16T12:00"))[2], any_value(0, 2)) << "a state itself, to the last bit";
  EXPECT_FALSE(files->exact_in_float(kSst));
}

TEST_F(PrescribedTimes, AYearMayBeginInAnyMonthAndHaveACalendarOfItsOwn) {
  // 365 days from 1 July on, of a calendar without leap years: state i is day i from there.
  write(path("year.nc"),
        {.units = "days since 2003-07-01",
         .calendar = "noleap",
         .times = numbers(365),
         .value = [](std::size_t i, std::size_t p) { return static_cast<double>(i + 1000 * p); }});
  const auto files = open({path("year.nc")}, Between::kCycle);
  EXPECT_EQ(files->file_calendar(), Calendar::kStandard);
  const auto day = [&](const char* time) { return read(*files, at(time))[0]; };
  EXPECT_EQ(day("2020-07-01"), 0);
  EXPECT_EQ(day("2020-12-31"), 183);
  EXPECT_EQ(day("2020-01-01"), 184);
  EXPECT_EQ(day("2020-02-28"), 242);
  EXPECT_EQ(day("2020-02-29"), 242);
  EXPECT_EQ(day("2020-03-01"), 243);
  EXPECT_EQ(day("2021-06-30"), 364);
  EXPECT_EQ(day("2021-06-30T12:00"), 182) << "half way from the last one to the first one";
  EXPECT_EQ(read(*files, at("2020-03-01T06:00"))[5], 5243.25);
}

TEST_F(PrescribedTimes, MoreThanAYearIsNoCycle) {
  const auto message = [&] {
    return message_of<DataError>([&] { open({path("long.nc")}, Between::kCycle); });
  };
  write(path("long.nc"), {.times = numbers(366), .value = any_value});
  const std::string says = message();
  for (const char* part :
       {"sst in ", "long.nc is there from 2019-01-01T00:00 to 2020-01-01T00:00", "\"cycle\"", "of one year"})
    EXPECT_NE(says.find(part), std::string::npos) << part << " is not in\n" << says;
  write(path("long.nc"), {.times = numbers(365), .value = any_value});
  EXPECT_NO_THROW(open({path("long.nc")}, Between::kCycle));
  write(path("long.nc"), {.units = "days since 2020-01-01", .times = numbers(366), .value = any_value});
  EXPECT_NO_THROW(open({path("long.nc")}, Between::kCycle)) << "a leap year";
}

TEST_F(PrescribedTimes, TheLastStateGoesOnWhereItIsHeld) {
  write(path("co2.nc"), {.name = "co2", .times = {0, 365}, .value = any_value, .series = true});
  const auto held = open({path("co2.nc")}, Between::kHold, kCo2),
             latest = open({path("co2.nc")}, Between::kLatest, kCo2);
  for (FileSet* files : {held.get(), latest.get()}) {
    EXPECT_FALSE(files->has(kCo2, at("2018-12-31T18:00")));
    EXPECT_THROW(read(*files, at("2018-12-31T18:00"), kCo2), DataError);
    EXPECT_EQ(read(*files, at("2019-12-31"), kCo2), std::vector<double>(kPoints, any_value(0, 0)));
    EXPECT_EQ(read(*files, at("2020-01-01"), kCo2), std::vector<double>(kPoints, any_value(1, 0)));
  }
  EXPECT_EQ(read(*held, at("2031-01-01"), kCo2), std::vector<double>(kPoints, any_value(1, 0)));
  EXPECT_FALSE(latest->has(kCo2, at("2031-01-01")));
}

/// As greenhouse gases of climate models: the mean of the whole earth, on axes of one entry each.
TEST_F(PrescribedTimes, AGridOfOnePointHoldsASeries) {
  write(path("co2.nc"), {.name = "co2", .times = {0, 730}, .value = any_value, .point = true});
  const auto files = open({path("co2.nc")}, Between::kLinear, kCo2);
  EXPECT_EQ(read(*files, at("2019-01-01"), kCo2), std::vector<double>(kPoints, any_value(0, 0)));
  for (const double value : read(*files, at("2020-01-01"), kCo2))
    EXPECT_NEAR(value, (any_value(0, 0) + any_value(1, 0)) / 2, 1e-12);
}

/// Their months are those of the states, and what is half way through one stays so.
TEST_F(PrescribedTimes, TimesOfAnotherCalendarAreThoseOfTheSamePartOfTheirMonth) {
  write(path("co2.nc"), {.name = "co2",
                         .units = "days since 2020-01-01",
                         .calendar = "360_day",
                         .times = {0, 15, 30, 45, 60},
                         .value = [](std::size_t i, std::size_t) { return static_cast<double>(i); },
                         .series = true});
  const auto linear = open({path("co2.nc")}, Between::kLinear, kCo2),
             held = open({path("co2.nc")}, Between::kHold, kCo2);
  EXPECT_EQ(linear->file_calendar(), Calendar::kStandard);
  const auto value = [&](FileSet& files, const char* time) { return read(files, at(time), kCo2)[0]; };
  EXPECT_EQ(value(*linear, "2020-01-01"), 0);
  EXPECT_EQ(value(*linear, "2020-01-16T12:00"), 1) << "January has 31 days";
  EXPECT_EQ(value(*linear, "2020-02-01"), 2);
  EXPECT_EQ(value(*linear, "2020-02-15T12:00"), 3) << "and February 29";
  EXPECT_EQ(value(*linear, "2020-02-22T18:00"), 3.5);
  EXPECT_EQ(value(*linear, "2020-03-01"), 4);
  EXPECT_EQ(value(*held, "2020-02-15T11:00"), 2);
  EXPECT_EQ(value(*held, "2020-02-15T12:00"), 3);
  EXPECT_FALSE(linear->has(kCo2, at("2020-03-01T06:00")));
  const std::string says = message_of<DataError>([&] { open({path("co2.nc")}, Between::kNothing, kCo2); });
  for (const char* part : {"co2.nc counts time in the calendar 360_day", "states.nc in standard",
                           "`times` are \"latest\", \"linear\" or \"hold\""})
    EXPECT_NE(says.find(part), std::string::npos) << part << " is not in\n" << says;
}

/// In one file of another calendar, whichever of them is asked for first.
TEST_F(PrescribedTimes, AYearThatIsRepeatedAndOneThatIsNotShareNoTimes) {
  write(path("both.nc"), {.units = "days since 2020-01-01",
                          .calendar = "noleap",
                          .times = {0, 45, 59, 90},
                          .value = [](std::size_t i, std::size_t) { return static_cast<double>(i); },
                          .second = "icec"});
  for (const bool cycle_first : {true, false}) {
    FileSet files({path("states.nc"), path("both.nc")});
    files.select(kState, true);
    const Field ice{"icec", {}};
    if (cycle_first) files.select_prescribed(kSst, Between::kCycle);
    files.select_prescribed(ice, Between::kLinear);
    if (!cycle_first) files.select_prescribed(kSst, Between::kCycle);
    EXPECT_EQ(read(files, at("2020-02-15"), kSst)[0], 1) << cycle_first;
    EXPECT_EQ(read(files, at("2020-02-15T12:00"), ice)[0], 1) << "half way through February, " << cycle_first;
  }
}

/// Of each state, before it is interpolated: ice that is absent at one time is half as thick half way from
/// it.
TEST_F(PrescribedTimes, StatesAreFilledBeforeTheyAreInterpolated) {
  write(path("sst.nc"), {.times = {0, 1, 2}, .value = [](std::size_t i, std::size_t p) {
                           return i == 1 && p == 4 ? std::nan("") : any_value(i, p);
                         }});
  for (const bool by_field : {false, true}) {
    FileSelection selection;
    selection.fill[by_field ? "sst" : "t2m"] = 100.5;
    FileSet files({path("sst.nc")}, selection);
    files.select_prescribed(kSst, Between::kLinear);
    EXPECT_EQ(files.is_filled(kSst), by_field);
    const std::vector<double> found = read(files, at("2019-01-01T06:00"));
    EXPECT_NEAR(found[3], 0.75 * any_value(0, 3) + 0.25 * any_value(1, 3), 1e-9);
    if (by_field) {
      EXPECT_NEAR(found[4], 0.75 * any_value(0, 4) + 0.25 * 100.5, 1e-9);
    } else {
      EXPECT_TRUE(std::isnan(found[4]));
    }
    std::vector<double> as_it_is(kPoints);
    files.read_unfilled(kSst, at("2019-01-02"), kAll, as_it_is);
    EXPECT_TRUE(std::isnan(as_it_is[4]));
  }
}

TEST_F(PrescribedTimes, StatisticsOfAYearAreOfAllItsTimes) {
  write(path("year.nc"), {.calendar = "noleap", .times = middles(), .value = any_value});
  Channels channels;
  channels.inputs = {{"sst", Role::kPrescribed, kSst}};
  double sum = 0;
  for (std::size_t i = 0; i < 12; ++i)
    for (std::size_t p = 0; p < kPoints; ++p) sum += any_value(i, p);
  run_ranks(2, [&](Communicator& communicator) {
    const auto own = open({path("year.nc")}, Between::kCycle);
    const Statistics found =
        compute_statistics(*own, channels, {{at("2020-01-01"), at("2020-01-02")}}, 6 * kHour, communicator);
    EXPECT_NEAR(found.of(kSst).mean, sum / (12 * kPoints), 1e-9);
  });
}

/// Each variable has its own, in windows, statistics and what is read.
TEST_F(PrescribedTimes, EachVariableHasItsOwn) {
  write(path("states.nc"),
        {.name = "t2m", .units = "hours since 2020-01-01", .times = numbers(9, 0, 6), .value = any_value});
  write(path("sst.nc"),
        {.units = "hours since 2020-01-01", .times = {0, 6, 12, 36, 42, 48}, .value = any_value});
  write(path("co2.nc"), {.name = "co2", .times = {0, 730}, .value = any_value, .series = true});
  DataOptions options;
  options.files = {"*.nc"};
  options.variables = {{"t2m", {}}};
  options.forcing_variables = {{"sst", {}}, {"co2", {}, "", {}, Between::kLinear}};
  options.train = {period("2020-01-01", "2020-01-03")};
  run_ranks(1, [&](Communicator& communicator) {
    const auto windows = [&] {
      const Dataset data(options, folder_.path(), 1, communicator);
      return data.train_windows();
    };
    // co2 is there at all times; sst lacks those from 18 to 30 h.
    std::vector<Time> wanted;
    for (const int hours : {0, 6, 36, 42}) wanted.push_back(at("2020-01-01") + hours * kHour);
    EXPECT_EQ(windows(), wanted);
    options.forcing_times = Between::kLinear;
    EXPECT_EQ(windows().size(), 8U);
    options.forcing_times = Between::kNothing;
    options.forcing_variables[1].times.reset();
    const std::string none = message_of<std::exception>(windows);
    EXPECT_NE(none.find("data.forcing_times is \"exact\""), std::string::npos) << none;
    options.forcing_variables[1].times = Between::kNothing;
    EXPECT_NE(message_of<std::exception>(windows).find("its times are \"exact\""), std::string::npos);
  });
}

/// Of a lead that later steps reach beyond.
TEST_F(PrescribedTimes, ForecastsThatBeganAfterTheStartAreTold) {
  write(path("states.nc"),
        {.name = "t2m", .units = "hours since 2020-01-01", .times = numbers(9, 0, 6), .value = any_value});
  write(path("fc.nc"),
        {.name = "rain", .units = "hours since 2020-01-01", .times = numbers(9, 0, 6), .value = any_value});
  DataOptions options;
  options.files = {"states.nc"};
  options.variables = {{"t2m", {}}};
  options.forcing_variables = {{"rain", {}, "", {"fc.nc"}}};
  options.train = {period("2020-01-01", "2020-01-03")};
  run_ranks(1, [&](Communicator& communicator) {
    for (const std::optional<Time> lead : {std::optional<Time>(), std::optional<Time>(0)}) {
      options.forcing_variables[0].lead = lead;
      const Dataset data(options, folder_.path(), 1, communicator);
      const std::vector<std::string> remarks = later_start_remarks(data, 2);
      ASSERT_EQ(remarks.size(), lead ? 1U : 0U);
      if (lead) {
        EXPECT_EQ(
            remarks[0].find("rain of data.forcing_variables is of forecasts of 0 h, and steps reach 12 h"),
            0U)
            << remarks[0];
      }
      EXPECT_TRUE(later_start_remarks(data, 0).empty());
    }
  });
}

TEST_F(PrescribedTimes, GapsAreMuchWiderThanTheMedianStep) {
  const auto days = [](const std::vector<double>& all) {
    std::vector<Time> times;
    for (const double day : all) times.push_back(static_cast<Time>(day) * kDay);
    return times;
  };
  const auto gaps = [&](const std::vector<double>& all, Between between) {
    return wide_gaps(days(all), between, Calendar::kNoLeap);
  };
  const std::vector<double> daily = {0, 1, 2, 3, 123, 124, 125, 129, 130};
  const std::vector<Period> wanted = {{3 * kDay, 123 * kDay}, {125 * kDay, 129 * kDay}};
  EXPECT_EQ(gaps(daily, Between::kLinear), wanted);
  EXPECT_EQ(gaps(daily, Between::kLatest), wanted);
  EXPECT_TRUE(gaps(daily, Between::kNothing).empty()) << "windows there are left out";
  EXPECT_TRUE(gaps({0, 31, 59, 90, 120, 210}, Between::kLinear).empty())
      << "three months are three times one";
  EXPECT_TRUE(gaps({0}, Between::kLinear).empty());
  // Half a year of months: the other half lies across the turn of the year.
  EXPECT_EQ(gaps({15, 46, 74, 105, 135, 166}, Between::kCycle),
            (std::vector<Period>{{166 * kDay, 380 * kDay}}));
}

using Messages = PrescribedTimes;

TEST_F(Messages, NameSeriesAmongWhatIsThere) {
  write(path("co2.nc"), {.name = "co2", .times = {0, 365}, .value = any_value, .series = true});
  const std::string says = message_of<DataError>([&] {
    open({path("co2.nc")}, Between::kLinear, {"co3", {}});
  });
  for (const char* part :
       {"no variable co3 in ", "did you mean \"co2\"?", "fields there: t2m; series in time: co2"})
    EXPECT_NE(says.find(part), std::string::npos) << part << " is not in\n" << says;
}

TEST_F(Messages, NameCalendarsAsTheFilesDo) {
  write(path("a.nc"), {.calendar = "proleptic_gregorian", .times = {0, 1}, .value = any_value});
  write(path("b.nc"), {.name = "t2m", .calendar = "365_day", .times = {0, 1}, .value = any_value});
  FileSet files({path("a.nc"), path("b.nc")});
  files.select(kSst, true);
  EXPECT_EQ(files.calendar_name(), "proleptic_gregorian");
  const std::string says = message_of<DataError>([&] { files.select(kState, true); });
  EXPECT_NE(says.find("b.nc counts time in the calendar 365_day, and "), std::string::npos) << says;
  EXPECT_NE(says.find("a.nc in proleptic_gregorian; "), std::string::npos) << says;
}

TEST_F(Messages, NameTheFileWithoutAUnit) {
  write(path("a.nc"), {.times = {0, 1}, .value = any_value, .unit = "K"});
  write(path("b.nc"), {.times = {2, 3}, .value = any_value});
  for (const bool turned : {false, true}) {
    FileSet files(turned ? std::vector{path("b.nc"), path("a.nc")} : std::vector{path("a.nc"), path("b.nc")});
    const std::string says = message_of<DataError>([&] { files.select(kSst, true); });
    EXPECT_NE(says.find("sst is in \"K\" in " + path("a.nc") + ", and " + path("b.nc") + " says no unit"),
              std::string::npos)
        << says;
  }
  // Files without any are taken as the statistics are, and that is told.
  Channels channels;
  channels.inputs = {{"sst", Role::kPrognostic, kSst}};
  Statistics statistics;
  statistics.fields["sst"] = {"K", 280, 10, 1};
  FileSet with({path("a.nc")}), without({path("b.nc")});
  with.select(kSst, true);
  without.select(kSst, true);
  EXPECT_TRUE(unit_remarks(statistics, channels, with).empty());
  EXPECT_EQ(unit_remarks(statistics, channels, without),
            std::vector<std::string>{
                "sst in " + path("b.nc") +
                " has no attribute units, and is taken to be in \"K\", as its statistics are"});
}

TEST_F(Messages, SayThatGivenStatisticsHaveNoIncrements) {
  write(path("a.nc"), {.times = {0, 1}, .value = any_value});
  FileSet files({path("a.nc")});
  files.select(kSst, true);
  Channels channels;
  channels.inputs = channels.targets = {{"sst", Role::kPrognostic, kSst}};
  Statistics statistics;
  statistics.lead_time = kDay;
  statistics.fields["sst"] = {"K", 280, 10, 0};
  const auto message = [&](const Statistics* given) {
    return message_of<DataError>(
        [&] { check_statistics(statistics, channels, files, Predict::kIncrement, kDay, given); });
  };
  EXPECT_EQ(message(nullptr).find("sst does not change within 24 h"), 0U);
  EXPECT_EQ(message(&statistics).find("the statistics of sst have no deviation of its change within 24 h"),
            0U);
}

/// A variable that has another name in one of the files, and one that has files of its own.
TEST_F(Messages, NameTheFirstFileWithoutAVariable) {
  const auto states = [&](const std::string& file, double first, const std::string& second) {
    write(path(file), {.name = "t2m", .times = numbers(4, first), .value = any_value, .second = second});
  };
  states("a.nc", 0, "v");
  states("b.nc", 4, "x");
  states("c.nc", 8, "v");
  states("d.nc", 12, "x");
  write(path("sst.nc"), {.times = {0, 1}, .value = any_value});
  FileSet files({path("a.nc"), path("b.nc"), path("c.nc"), path("d.nc"), path("sst.nc")});
  const Field v{"v", {}};
  for (const Field& field : {kState, v, kSst}) files.select(field, true);
  const auto lacking = files.first_file_without(v, period("2019-01-02", "2019-12-31"));
  ASSERT_TRUE(lacking.has_value());
  EXPECT_EQ(lacking->path, path("b.nc"));
  EXPECT_EQ(lacking->holds, "t2m");
  EXPECT_EQ(lacking->time, at("2019-01-05"));
  EXPECT_EQ(files.first_file_without(v, period("2019-01-10", "2019-12-31"))->path, path("d.nc"));
  EXPECT_FALSE(files.first_file_without(v, period("2019-01-09", "2019-01-12")).has_value());
  EXPECT_FALSE(files.first_file_without(kState, period("2019-01-01", "2019-12-31")).has_value());
  EXPECT_FALSE(files.first_file_without(kSst, period("2019-01-01", "2019-12-31")).has_value())
      << "it has files of its own";
}

/// Daily states of 2020 and sst beside them.
DataOptions daily(const std::string& folder, const std::vector<double>& sst_days,
                  const std::function<double(std::size_t, std::size_t)>& sst) {
  write(folder + "/states.nc",
        {.name = "t2m", .units = "days since 2020-01-01", .times = numbers(140), .value = any_value});
  write(folder + "/sst.nc", {.units = "days since 2020-01-01", .times = sst_days, .value = sst});
  write(folder + "/co2.nc", {.name = "co2", .times = {0, 365, 731}, .value = any_value, .series = true});
  DataOptions options;
  options.files = {"*.nc"};
  options.variables = {{"t2m", {}}};
  options.forcing_variables = {{"sst", {}}, {"co2", {}}};
  options.forcing_times = Between::kLinear;
  options.lead_time = kDay;
  options.train = {period("2020-01-01", "2020-05-19")};
  return options;
}

TEST_F(PrescribedTimes, GapsAreToldOncePerVariableWhereTheyAreUsed) {
  std::vector<double> days = numbers(4);
  for (double day = 123; day < 140; ++day) days.push_back(day);
  const DataOptions options = daily(folder_.path(), days, any_value);
  run_ranks(1, [&](Communicator& communicator) {
    const Dataset data(options, folder_.path(), 1, communicator);
    EXPECT_EQ(gap_remarks(data, {period("2020-01-01", "2020-02-01"), period("2020-04-01", "2020-05-10")}),
              std::vector<std::string>{
                  "sst of data.forcing_variables is interpolated from 2020-01-04T00:00 to 2020-05-03T00:00, "
                  "over 120 days, and its times are usually 1 day apart; check that its files are complete"});
    EXPECT_TRUE(
        gap_remarks(data, {period("2020-01-01", "2020-01-03"), period("2020-05-04", "2020-05-10")}).empty())
        << "no forecast needs what lies in the gap";
  });
}

/// Two ranks, each with some of the columns: of one day all are missing, of another those of one rank.
TEST_F(PrescribedTimes, WhatIsMissingEverywhereIsTold) {
  const DataOptions options = daily(folder_.path(), numbers(140), [](std::size_t i, std::size_t p) {
    const bool missing = i == 5 || i == 7 || (i == 3 && p % kColumns < 2);
    return missing ? std::nan("") : any_value(i, p);
  });
  run_ranks(2, [&](Communicator& communicator) {
    Dataset data(options, folder_.path(), 1, communicator);
    data.files().watch({kSst});
    const Box own = communicator.rank() == 0 ? Box{{0, 0}, {2, 2}} : Box{{0, 2}, {2, 1}};
    const std::vector<Time> times = times_of_forecasts(data, {at("2020-01-01"), at("2020-01-02")}, 4);
    EXPECT_EQ(times.size(), 6U);
    std::vector<double> plane(static_cast<std::size_t>(own.extent.count()));
    for (std::size_t t = 0; t < 5; ++t) data.files().read(kSst, times[t], own, plane);
    EXPECT_TRUE(blank_remarks(data, times, communicator).empty());
    data.files().read(kSst, times[5], own, plane);
    data.files().read(kSst, at("2020-01-08"), own, plane);
    std::vector<Time> more = times;
    more.push_back(at("2020-01-08"));
    EXPECT_EQ(
        blank_remarks(data, more, communicator),
        std::vector<std::string>{
            "sst of data.forcing_variables is missing everywhere at 2020-01-06T00:00, and at 1 more of 7 "
            "times; the model was given its mean there"});
  });
}

}  // namespace prescribed_times_test
}  // namespace jigsaw
