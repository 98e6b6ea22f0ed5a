// Running sums of files, of which states are the sums over steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "array/host_view.h"
#include "base/error.h"
#include "comm/thread/run_ranks.h"
#include "config/config.h"
#include "fields/file_set.h"
#include "io/fixtures.h"
#include "io/netcdf_writer.h"
#include "samples/batch_reader.h"
#include "samples/dataset.h"
#include "samples/statistics.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace deaccumulate_test {

constexpr std::size_t kRows = 2, kColumns = 3, kPoints = kRows * kColumns;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
const Box kAll{{0, 0}, {kRows, kColumns}};
const Field kTp{"tp", {}}, kT2m{"t2m", {}};

/// What falls in the hour that ends so many hours after 2020-01-01T00:00; sums of it are exact.
double rate(int hour, std::size_t point) {
  return ((hour + 100) * 7 + static_cast<int>(point) * 5) % 13 / 8.0;
}

double sum(int behind, int last, std::size_t point) {
  double all = 0;
  for (int hour = behind + 1; hour <= last; ++hour) all += rate(hour, point);
  return all;
}

/// As ERA5-Land has it: since 00:00, at 00:00 that of the whole day.
double since_midnight(int hour, std::size_t point) {
  int begin = hour - 1;
  while (begin % 24 != 0) --begin;
  return sum(begin, hour, point);
}

double since_start(int hour, std::size_t point) {
  return sum(-1, hour, point);
}

std::vector<int> hours(int first, int last, int step = 1) {
  std::vector<int> all;
  for (int hour = first; hour <= last; hour += step) all.push_back(hour);
  return all;
}

std::vector<Time> times_of(const std::vector<int>& hours) {
  std::vector<Time> times;
  for (const int hour : hours) times.push_back(at("2020-01-01") + hour * kHour);
  return times;
}

using Value = std::function<double(int hour, std::size_t point)>;

/// tp [time, 2, 3], or [time, number, 2, 3] with 1000 times the member's number added.
struct Made {
  std::vector<int> hours;
  Value value = since_midnight;
  std::vector<double> members = {};
  bool packed = false;  ///< int16 by steps of 1/8, NaN as −1
  bool t2m = false;     ///< also t2m [time, 2, 3], of the same values
  nc_type type = NC_DOUBLE;
  double minutes = 0;  ///< behind the hours
  std::vector<double> latitudes = {20, 10};
};

class Deaccumulate : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }

  std::string write(const std::string& name, const Made& made) const {
    testing::NetcdfWriter file(path(name));
    const int time = file.dimension("time", made.hours.size()),
              lat = file.dimension("latitude", made.latitudes.size()),
              lon = file.dimension("longitude", kColumns);
    std::vector<int> dims = {time, lat, lon};
    const int times = file.variable("time", NC_DOUBLE, {time}),
              lats = file.variable("latitude", NC_DOUBLE, {lat}),
              lons = file.variable("longitude", NC_DOUBLE, {lon}),
              t2m = made.t2m ? file.variable("t2m", NC_DOUBLE, dims) : -1;
    if (!made.members.empty()) {
      const int number = file.dimension("number", made.members.size());
      dims.insert(dims.begin() + 1, number);
      file.put(file.variable("number", NC_DOUBLE, {number}), made.members);
    }
    const int tp = file.variable("tp", made.packed ? NC_SHORT : made.type, dims);
    file.text(times, "units", "hours since 2020-01-01");
    file.text(lats, "units", "degrees_north");
    file.text(lons, "units", "degrees_east");
    file.text(tp, "units", "mm");
    if (made.packed) {
      file.number(tp, "scale_factor", NC_DOUBLE, 0.125);
      file.number(tp, "_FillValue", NC_SHORT, -1);
    }
    file.end();
    std::vector<double> numbers, values, of_t2m;
    const std::vector<double> members = made.members.empty() ? std::vector<double>{0} : made.members;
    for (const int hour : made.hours) {
      numbers.push_back(hour + made.minutes / 60);
      for (const double member : members) {
        for (std::size_t p = 0; p < made.latitudes.size() * kColumns; ++p) {
          const double value = made.value(hour, p) + 1000 * member * hour;
          values.push_back(!made.packed ? value : std::isnan(value) ? -1 : std::round(8 * value));
          if (t2m >= 0) of_t2m.push_back(value);
        }
      }
    }
    file.put(times, numbers);
    file.put(lats, made.latitudes);
    file.put(lons, std::vector<double>{0, 5, 10});
    file.put(tp, values);
    if (t2m >= 0) file.put(t2m, of_t2m);
    return path(name);
  }

  static FileSelection summed(SummedSince since, Time step = 0) {
    FileSelection selection;
    selection.time_step.every = step;
    selection.deaccumulate["tp"] = since;
    return selection;
  }

  template <typename T = double>
  static std::vector<T> read(FileSet& files, Moment moment, const Box& box = kAll) {
    std::vector<T> plane(static_cast<std::size_t>(box.extent.count()), -1);
    files.read(kTp, moment, box, std::span<T>(plane));
    return plane;
  }

  /// All states, at these hours alone, are what falls in so many before.
  static void expect_steps(FileSet& files, const std::vector<int>& wanted, int step) {
    files.select(kTp, true);
    ASSERT_EQ(files.times(kTp), times_of(wanted));
    for (const int hour : wanted) {
      const std::vector<double> found = read(files, times_of({hour})[0]);
      for (std::size_t p = 0; p < kPoints; ++p)
        EXPECT_EQ(found[p], sum(hour - step, hour, p)) << "at " << hour << " h, point " << p;
    }
  }

  const testing::TemporaryFolder folder_;
};

TEST_F(Deaccumulate, SumsSinceMidnightBecomeThoseOfEachHour) {
  // The sum of the hour before the first time is not to be had; that of the first hour of a day is its own.
  FileSet from_0({write("a.nc", {.hours = hours(0, 50)})}, summed(SummedSince::kDay));
  expect_steps(from_0, hours(1, 50), 1);
  FileSet from_1({write("b.nc", {.hours = hours(1, 50)})}, summed(SummedSince::kDay));
  expect_steps(from_1, hours(1, 50), 1);
  FileSet from_2({write("c.nc", {.hours = hours(2, 50)})}, summed(SummedSince::kDay));
  expect_steps(from_2, hours(3, 50), 1);
  EXPECT_EQ(read(from_2, at("2020-01-02"))[4], since_midnight(24, 4) - since_midnight(23, 4));
  EXPECT_EQ(read(from_2, at("2020-01-02T01:00"))[4], since_midnight(25, 4));
  // A part of the plane.
  EXPECT_EQ(read(from_2, at("2020-01-02"), {{1, 1}, {1, 2}}),
            (std::vector<double>{rate(24, 4), rate(24, 5)}));
  EXPECT_FALSE(from_2.has(kTp, at("2020-01-01T02:00")));
  EXPECT_THROW(read(from_2, at("2020-01-01T02:00")), DataError);
  EXPECT_TRUE(from_2.is_deaccumulated(kTp));
  EXPECT_FALSE(from_2.exact_in_float(kTp));
  EXPECT_FALSE(from_2.stream(kTp, at("2020-01-02"), kAll));
  // Without the key all is as the file has it.
  FileSet plain({path("a.nc")});
  plain.select(kTp, true);
  EXPECT_EQ(plain.times(kTp).size(), 51U);
  EXPECT_EQ(read(plain, at("2020-01-02"))[4], since_midnight(24, 4));
}

TEST_F(Deaccumulate, AStepIsThatOfTheConfigurationOrOfTheTimes) {
  write("hours.nc", {.hours = hours(0, 50)});
  write("six.nc", {.hours = hours(0, 54, 6)});
  FileSet of_hours({path("hours.nc")}, summed(SummedSince::kDay, 6 * kHour));
  expect_steps(of_hours, hours(6, 48, 6), 6);
  FileSet usual({path("six.nc")}, summed(SummedSince::kDay));
  expect_steps(usual, hours(6, 54, 6), 6);
  // Sums of whole days stand in the files.
  FileSet days({path("hours.nc")}, summed(SummedSince::kDay, kDay));
  expect_steps(days, {0, 24, 48}, 24);
}

TEST_F(Deaccumulate, BothValuesOfADifferenceMustBeThere) {
  std::vector<int> there = hours(0, 72), wanted = hours(1, 72);
  std::erase(there, 30);
  std::erase_if(wanted, [](int hour) { return hour == 30 || hour == 31; });
  FileSet lacking({write("a.nc", {.hours = there})}, summed(SummedSince::kDay));
  expect_steps(lacking, wanted, 1);
  // The first hour of a day needs no value at 00:00.
  std::erase(there, 48);
  std::erase(wanted, 48);
  FileSet more({write("b.nc", {.hours = there})}, summed(SummedSince::kDay));
  expect_steps(more, wanted, 1);
  EXPECT_TRUE(more.has(kTp, at("2020-01-03T01:00")));
}

TEST_F(Deaccumulate, SumsSinceTheStartRunOnFromFileToFile) {
  FileSet files({write("a.nc", {.hours = hours(0, 30), .value = since_start}),
                 write("b.nc", {.hours = hours(31, 60), .value = since_start})},
                summed(SummedSince::kStart));
  expect_steps(files, hours(1, 60), 1);
  EXPECT_EQ(files.path_at(kTp, at("2020-01-02T07:00")), path("b.nc"));
  // A simulation that began anew is told by nobody: what is subtracted is the value before.
  FileSet anew(
      {path("a.nc"), write("c.nc", {.hours = hours(31, 60),
                                    .value = [](int hour, std::size_t p) { return sum(30, hour, p); }})},
      summed(SummedSince::kStart));
  anew.select(kTp, true);
  EXPECT_EQ(read(anew, times_of({31})[0])[2], rate(31, 2) - since_start(30, 2));
  EXPECT_EQ(read(anew, times_of({32})[0])[2], rate(32, 2));
}

TEST_F(Deaccumulate, WhatStandsInTwoFilesIsComparedAlsoWhereItIsSubtracted) {
  write("a.nc", {.hours = hours(1, 10)});
  write("b.nc", {.hours = hours(10, 20)});
  FileSet equal({path("a.nc"), path("b.nc")}, summed(SummedSince::kDay));
  expect_steps(equal, hours(1, 20), 1);
  EXPECT_EQ(equal.repeated_times(kTp), times_of({10, 11}));
  write("c.nc", {.hours = hours(10, 20), .value = [](int hour, std::size_t p) {
                   return since_midnight(hour, p) + (hour == 10 ? 1 : 0);
                 }});
  FileSet other({path("a.nc"), path("c.nc")}, summed(SummedSince::kDay));
  other.select(kTp, true);
  for (const int hour : {10, 11}) {
    const std::string says = message_of<DataError>([&] { read(other, times_of({hour})[0]); });
    EXPECT_NE(says.find("tp at 2020-01-01T10:00 has other values in "), std::string::npos) << says;
  }
  EXPECT_EQ(read(other, times_of({12})[0])[1], rate(12, 1));
  FileSelection last = summed(SummedSince::kDay);
  last.overlap = Overlap::kLast;
  FileSet wins({path("a.nc"), path("c.nc")}, last);
  wins.select(kTp, true);
  EXPECT_EQ(read(wins, times_of({10})[0])[1], rate(10, 1) + 1);
  EXPECT_EQ(read(wins, times_of({11})[0])[1], rate(11, 1) - 1);
}

TEST_F(Deaccumulate, MembersAreDifferencesOfTheirOwn) {
  const Made all{.hours = hours(0, 30), .members = {0, 1, 2}};
  Made first = all, second = all;
  first.members = {0, 2};
  second.members = {1};
  for (const bool split : {false, true}) {
    FileSelection selection = summed(SummedSince::kDay);
    selection.member.all = true;
    std::vector<std::string> paths = {write("a.nc", split ? first : all)};
    if (split) paths.push_back(write("b.nc", second));
    FileSet files(paths, selection);
    files.select(kTp, true);
    ASSERT_EQ(files.members(), 3);
    ASSERT_EQ(files.times(kTp), times_of(hours(1, 30)));
    for (std::int32_t member = 0; member < 3; ++member) {
      EXPECT_EQ(read(files, {times_of({24})[0], member})[3], rate(24, 3) + 1000 * member) << split;
      EXPECT_EQ(read(files, {times_of({25})[0], member})[3], rate(25, 3) + 25000 * member) << split;
    }
  }
  second.hours = hours(0, 29);
  FileSelection selection = summed(SummedSince::kDay);
  selection.member.all = true;
  write("b.nc", second);
  write("a.nc", first);
  const std::string says = message_of<DataError>([&] {
    FileSet files({path("a.nc"), path("b.nc")}, selection);
    files.select(kTp, true);
  });
  EXPECT_NE(says.find("tp at 2020-01-02T06:00 is of the members"), std::string::npos) << says;
}

/// Of packed values a difference is missing where either value is; data.missing says so of the sums, and
/// data.fill what the differences become.
TEST_F(Deaccumulate, ADifferenceIsMissingWhereAValueIs) {
  const auto value = [](int hour, std::size_t p) {
    return hour == 10 && p == 2 ? kNone : since_midnight(hour, p);
  };
  write("a.nc", {.hours = hours(1, 24), .value = value, .packed = true});
  const double declared = since_midnight(15, 1);
  for (const bool filled : {false, true}) {
    FileSelection selection = summed(SummedSince::kDay);
    selection.missing["tp"] = declared;
    if (filled) selection.fill["tp"] = 0.5;
    FileSet files({path("a.nc")}, selection);
    files.select(kTp, true);
    ASSERT_EQ(files.times(kTp).size(), 24U);
    for (int hour = 1; hour <= 24; ++hour) {
      const std::vector<double> found = read(files, times_of({hour})[0]);
      std::vector<double> unfilled(kPoints);
      files.read_unfilled(kTp, times_of({hour})[0], kAll, unfilled);
      for (std::size_t p = 0; p < kPoints; ++p) {
        const auto is_there = [&](int when) {
          return !std::isnan(value(when, p)) && since_midnight(when, p) != declared;
        };
        const bool there = is_there(hour) && (hour == 1 || is_there(hour - 1));
        EXPECT_EQ(std::isnan(unfilled[p]), !there) << hour << " " << p;
        if (there) {
          EXPECT_EQ(found[p], rate(hour, p)) << hour << " " << p;
        } else if (filled) {
          EXPECT_EQ(found[p], 0.5) << hour << " " << p;
        } else {
          EXPECT_TRUE(std::isnan(found[p])) << hour << " " << p;
        }
      }
    }
  }
}

/// Sums of months, of which float32 keeps little behind the point.
TEST_F(Deaccumulate, FloatsAreDifferencesOfDoublesRoundedOnce) {
  const auto value = [](int hour, std::size_t p) { return 1e7 / 3 + since_start(hour, p) / 3; };
  write("a.nc", {.hours = hours(0, 20), .value = value});
  FileSet files({path("a.nc")}, summed(SummedSince::kStart));
  files.select(kTp, true);
  for (const Time time : files.times(kTp)) {
    const std::vector<double> exact = read(files, time);
    const std::vector<float> rounded = read<float>(files, time);
    for (std::size_t p = 0; p < kPoints; ++p) EXPECT_EQ(rounded[p], static_cast<float>(exact[p]));
  }
  EXPECT_EQ(read(files, times_of({7})[0])[5], value(7, 5) - value(6, 5));
}

/// To the middles of the cells: means of two rows.
TEST_F(Deaccumulate, StatesAreRegriddedAndThenSubtracted) {
  write("a.nc", {.hours = hours(1, 30), .latitudes = {20, 10, 0}});
  FileSelection selection = summed(SummedSince::kDay);
  selection.regrid.method = Regrid::kLinear;
  selection.regrid.latitude = {15, 5, 10};
  selection.regrid.longitude = {0, 10, 5};
  FileSet files({path("a.nc")}, selection);
  files.select(kTp, true);
  ASSERT_EQ(files.grid().shape(), (Shape{kRows, kColumns}));
  ASSERT_EQ(files.times(kTp), times_of(hours(1, 30)));
  for (int hour = 1; hour <= 30; ++hour) {
    const std::vector<double> found = read(files, times_of({hour})[0]);
    for (std::size_t p = 0; p < kPoints; ++p)
      EXPECT_NEAR(found[p], (rate(hour, p) + rate(hour, p + kColumns)) / 2, 1e-9) << hour << " " << p;
  }
}

TEST_F(Deaccumulate, StatesHoldOverTheirStep) {
  write("a.nc", {.hours = hours(0, 30), .t2m = true});
  FileSet files({path("a.nc")}, summed(SummedSince::kDay, 3 * kHour));
  files.select(kTp, true);
  files.select(kT2m, true);
  EXPECT_EQ(files.time_limits(kTp), (Period{-3 * kHour, 0}));
  EXPECT_EQ(files.time_limits(kT2m), std::nullopt);
  EXPECT_EQ(files.describe(kTp).texts.at("cell_methods"), "time: sum");
  EXPECT_EQ(files.describe(kTp).texts.at("units"), "mm");
  EXPECT_FALSE(files.describe(kT2m).texts.contains("cell_methods"));
  // A field of the same file is what it was, at all its times.
  EXPECT_EQ(files.times(kT2m), times_of(hours(0, 30, 3)));
  EXPECT_TRUE(files.storage()[1].states == 2 && files.storage()[0].states == 1);
}

DataOptions options_of(const std::string& file) {
  DataOptions options;
  options.files = {file};
  options.variables = {{"t2m", {}}, {"tp", {}}};
  options.lead_time = kHour;
  options.deaccumulate = {{"tp", SummedSince::kDay}};
  options.train = {period("2020-01-01", "2020-01-02")};
  return options;
}

/// Over the training period, of the states alone that there are.
TEST_F(Deaccumulate, StatisticsAndWindowsAreOfDifferences) {
  std::vector<int> there = hours(0, 47);
  std::erase(there, 30);
  write("a.nc", {.hours = there, .t2m = true});
  double count = 0, mean = 0, square = 0, changes = 0, change = 0, change_square = 0;
  const auto has = [](int hour) { return hour >= 1 && hour <= 47 && hour != 30 && hour != 31; };
  std::vector<Time> windows;
  for (int hour = 0; hour <= 47; ++hour) {
    if (has(hour) && has(hour + 1)) windows.push_back(times_of({hour})[0]);
    for (std::size_t p = 0; p < kPoints && has(hour); ++p) {
      count += 1;
      mean += rate(hour, p);
      square += rate(hour, p) * rate(hour, p);
      if (!has(hour + 1)) continue;
      const double more = rate(hour + 1, p) - rate(hour, p);
      changes += 1;
      change += more;
      change_square += more * more;
    }
  }
  mean /= count;
  change /= changes;
  for (const int ranks : {1, 3}) {
    run_ranks(ranks, [&](Communicator& communicator) {
      const Dataset data(options_of("a.nc"), folder_.path(), 1, communicator);
      EXPECT_EQ(data.train_windows(), windows);
      const FieldStatistics& found = data.statistics().of(kTp);
      EXPECT_NEAR(found.mean, mean, 1e-12);
      EXPECT_NEAR(found.deviation, std::sqrt(square / count - mean * mean), 1e-12);
      EXPECT_NEAR(found.increment_deviation, std::sqrt(change_square / changes - change * change), 1e-12);
      EXPECT_EQ(data.statistics().seen.at("tp").missing, 0);
    });
  }
}

/// The reader of batches gives them, normalised, with the increments of the differences.
TEST_F(Deaccumulate, BatchesHoldDifferences) {
  write("a.nc", {.hours = hours(0, 47), .t2m = true, .type = NC_FLOAT});
  DataOptions options = options_of("a.nc");
  options.transforms = {{"t2m", {.kind = TransformKind::kNone}}, {"tp", {.kind = TransformKind::kNone}}};
  options.predict = Predict::kState;
  options.forcing_variables = {};
  run_ranks(1, [&](Communicator& communicator) {
    Dataset data(options, folder_.path(), 1, communicator);
    BatchReader reader = data.make_reader();
    BatchRequest request;
    request.times = times_of({24, 25});
    request.input = Box::whole({2, kRows, kColumns, 2});
    request.target = request.input;
    const Context host = Context::make_host(Backend::kReference, 1);
    const Batch batch = reader.read(request, host);
    const HostView<float> input(batch.input), target(batch.targets.at(0));
    for (std::size_t b = 0; b < 2; ++b) {
      for (std::size_t p = 0; p < kPoints; ++p) {
        const int hour = 24 + static_cast<int>(b);
        EXPECT_EQ(input[(b * kPoints + p) * 2 + 1], rate(hour, p));
        EXPECT_EQ(target[(b * kPoints + p) * 2 + 1], rate(hour + 1, p));
        EXPECT_EQ(input[(b * kPoints + p) * 2], since_midnight(hour, p)) << "t2m";
      }
    }
  });
}

/// What is prescribed may be a running sum, too, where it is given at its own times alone.
TEST_F(Deaccumulate, OfPrescribedFieldsAndOfSingleOnes) {
  write("a.nc", {.hours = hours(0, 30), .t2m = true});
  DataOptions options = options_of("a.nc");
  options.variables = {{"t2m", {}}};
  options.forcing_variables = {{"tp", {}}};
  run_ranks(1, [&](Communicator& communicator) {
    Dataset data(options, folder_.path(), 1, communicator);
    EXPECT_EQ(data.train_windows().front(), at("2020-01-01T01:00"));
    EXPECT_EQ(read(data.files(), at("2020-01-01T05:00"))[1], rate(5, 1));
  });
  options.deaccumulate = {};
  run_ranks(1, [&](Communicator& communicator) {
    Dataset data(options, folder_.path(), 1, communicator);
    EXPECT_EQ(data.train_windows().front(), at("2020-01-01"));
  });
}

TEST_F(Deaccumulate, WhatHasNoStepOfADayIsRefused) {
  const auto refused = [&](const Made& made, Time step, const std::string& says) {
    write("a.nc", made);
    FileSet files({path("a.nc")}, summed(SummedSince::kDay, step));
    const std::string found = message_of<DataError>([&] { files.select(kTp, true); });
    EXPECT_NE(found.find(says), std::string::npos) << found;
  };
  refused({.hours = hours(0, 50, 5)}, 0, "has times 5 h apart, which does not divide it; data.time_step");
  refused({.hours = {6}}, 0, "a.nc, which has one time; say it by data.time_step");
  refused({.hours = hours(0, 50), .minutes = 30}, 0, "are no whole steps from there: 2020-01-01T00:30");
  write("one.nc", {.hours = {6}});
  FileSet one({path("one.nc")}, summed(SummedSince::kDay, 6 * kHour));
  expect_steps(one, {6}, 6);
  write("start.nc", {.hours = hours(0, 50, 5), .value = since_start});
  FileSet start({path("start.nc")}, summed(SummedSince::kStart));
  expect_steps(start, hours(5, 50, 5), 5);
}

TEST_F(Deaccumulate, TheKeyIsChecked) {
  const auto says = [](const std::string& more) {
    return message_of<ConfigError>([&] {
      parse<DataOptions>(Json::parse(
          R"({"files": ["a.nc"], "variables": ["tp", {"name": "q", "levels": [500]}], "static": ["lsm"],
              "forcing_variables": ["ssr", {"name": "tisr", "times": "linear"}],
              "train": ["2020-01-01", "2020-01-02"], )" +
          more + "}"));
    });
  };
  const auto expect = [&](const std::string& more, const std::string& wanted) {
    EXPECT_EQ(says(more).find(wanted), 0U) << says(more);
  };
  expect(R"("deaccumulate": {"rain": "day"})", "deaccumulate names rain, which is no variable or field");
  expect(R"("deaccumulate": {"lsm": "day"})", "deaccumulate names lsm, which is of data.static");
  expect(R"("deaccumulate": {"tisr": "day"})",
         "deaccumulate names tisr, of data.forcing_variables, which is");
  expect(R"("forcing_times": "latest", "deaccumulate": {"ssr": "day"})", "deaccumulate names ssr, of data.");
  expect(R"("deaccumulate": {"tp": "day"}, "time_step": 5, "lead_hours": 5)",
         "deaccumulate has sums of tp that begin anew every day, and data.time_step, 5 h, does not divide");
  expect(R"("deaccumulate": {"tp": "start"}, "time_step": "month", "lead_hours": 720)",
         "deaccumulate is of times that are one step apart, and data.time_step is \"month\"");
  expect(R"("deaccumulate": {"tp": "week"})", "deaccumulate.tp");
  const auto options = parse<DataOptions>(Json::parse(
      R"({"files": ["a.nc"], "variables": ["tp", {"name": "q", "levels": [500, 850]}],
          "forcing_variables": ["ssr"], "train": ["2020-01-01", "2020-01-02"], "time_step": 5,
          "lead_hours": 5, "deaccumulate": {"tp": "start", "q_850": "start", "ssr": "start"}})"));
  EXPECT_EQ(options.summed_since(kTp), SummedSince::kStart);
  EXPECT_EQ(options.summed_since({"q", 850}), SummedSince::kStart);
  EXPECT_EQ(options.summed_since({"q", 500}), std::nullopt);
  EXPECT_EQ(to_json(options)["deaccumulate"]["tp"], "start");
  EXPECT_EQ(to_json(parse<DataOptions>(to_json(options))), to_json(options));
  const std::string lead = message_of<ConfigError>([] {
    parse<DataOptions>(Json::parse(
        R"({"files": ["a.nc"], "variables": [{"name": "tp", "lead": 24}], "deaccumulate": {"tp": "start"},
            "train": ["2020-01-01", "2020-01-02"]})"));
  });
  EXPECT_NE(lead.find("names tp, whose `lead` takes one state of each forecast"), std::string::npos) << lead;
}

}  // namespace deaccumulate_test
}  // namespace jigsaw
