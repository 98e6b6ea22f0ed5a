#include "samples/statistics.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>

#include "base/error.h"
#include "comm/agreement.h"
#include "comm/thread/run_ranks.h"
#include "files/netcdf_output.h"
#include "io/fixtures.h"
#include "samples/dataset.h"
#include "samples/moments.h"
#include "samples/sample_data.h"
#include "support/temporary_folder.h"

namespace jigsaw {
namespace statistics_test {

Statistics of_fixtures(Communicator& communicator) {
  return Dataset(fixture_options(), fixture(""), 1, communicator).statistics();
}

TEST(Moments, MergeLikeTheWhole) {
  const std::vector<double> values = {1e8 + 1, 1e8 + 2, NAN, 1e8 + 4, 1e8 + 9};
  RunningMoments merged;
  merged.merge(RunningMoments::of(std::span(values).first(2)));
  merged.merge(RunningMoments::of({}));
  merged.merge(RunningMoments::of(std::span(values).subspan(2)));
  EXPECT_DOUBLE_EQ(merged.mean, 1e8 + 4);
  EXPECT_NEAR(merged.deviation(), std::sqrt((9 + 4 + 25) / 4.0), 1e-7);
}

TEST(Statistics, AgreeWithNumpy) {
  run_ranks(1, [](Communicator& communicator) {
    const Statistics statistics = of_fixtures(communicator);
    for (const auto& [name, wanted] : expected()["statistics"].items()) {
      const FieldStatistics& found = statistics.fields.at(name);
      EXPECT_NEAR(found.mean, wanted["mean"].get<double>(), 1e-12 * std::abs(found.mean)) << name;
      EXPECT_NEAR(found.deviation, wanted["deviation"].get<double>(), 1e-12 * found.deviation) << name;
      EXPECT_NEAR(found.increment_deviation, wanted["increment_deviation"].get<double>(),
                  1e-12 * found.increment_deviation)
          << name;
    }
    EXPECT_EQ(statistics.fields.at("tp").increment_deviation, 0);
    for (const std::string name : {"t2m", "t_850", "tp"}) {
      // Of the first eight times, which are those of the period.
      std::vector<double> values = expected_values(name);
      values.resize(std::size_t{8} * 56);
      const std::size_t missing = std::erase_if(values, [](double value) { return std::isnan(value); });
      EXPECT_EQ(missing > 0, name == "t2m");
      const SeenValues& seen = statistics.seen.at(name);
      EXPECT_DOUBLE_EQ(seen.missing, static_cast<double>(missing) / (8.0 * 56)) << name;
      EXPECT_DOUBLE_EQ(seen.least, *std::ranges::min_element(values)) << name;
      EXPECT_DOUBLE_EQ(seen.largest, *std::ranges::max_element(values)) << name;
    }
  });
}

/// x of `count` days from day `first` on, which follows the seasons of a year and varies by ±8 over the grid.
std::string write_days(const std::string& path, int first, int count, double more) {
  using Type = NetcdfOutput::Type;
  NetcdfOutput file(path);
  const int time = file.add_dimension("time", static_cast<std::size_t>(count)),
            lat = file.add_dimension("lat", 4), lon = file.add_dimension("lon", 5);
  const int times = file.add_variable("time", Type::kDouble, {time}),
            lats = file.add_variable("lat", Type::kDouble, {lat}),
            lons = file.add_variable("lon", Type::kDouble, {lon}),
            x = file.add_variable("x", Type::kFloat, {time, lat, lon});
  file.add_text(times, "units", "days since 2000-01-01");
  file.add_text(lats, "units", "degrees_north");
  file.add_text(lons, "units", "degrees_east");
  file.add_text(x, "units", "K");
  file.end_definitions();
  std::vector<double> days;
  std::vector<float> values;
  for (int day = first; day < first + count; ++day) {
    days.push_back(day);
    for (int i = 0; i < 20; ++i) {
      values.push_back(static_cast<float>(280 + more + 25 * std::sin(day / 58.1) + 8 * std::sin(2.1 * i) +
                                          std::sin(0.9 * day + i)));
    }
  }
  file.write(times, days);
  file.write(lats, std::vector<double>{0, 10, 20, 30});
  file.write(lons, std::vector<double>{0, 10, 20, 30, 40});
  file.write(x, values);
  file.close();
  return path;
}

TEST(Statistics, SayWhereOneFileIsInAnotherUnitThanTheOthers) {
  const testing::TemporaryFolder folder;
  const std::vector<std::string> good = {write_days(folder.path() + "/a.nc", 0, 90, 0),
                                         write_days(folder.path() + "/b.nc", 90, 90, 0),
                                         write_days(folder.path() + "/c.nc", 400, 90, 0)},
                                 lie = {good[0], write_days(folder.path() + "/d.nc", 90, 90, -273.15),
                                        good[2]};
  const auto seen = [&](const std::vector<std::string>& paths, int ranks) {
    SeenValues found;
    run_ranks(ranks, [&](Communicator& communicator) {
      FileSet files(paths);
      files.select({"x", {}}, true);
      Channels channels;
      channels.targets.emplace_back();
      channels.targets[0].name = "x";
      channels.targets[0].field = {"x", {}};
      const Statistics statistics =
          compute_statistics(files, channels, {{at("2000-01-01"), at("2002-01-01")}}, kDay, communicator);
      EXPECT_EQ(statistics.fields.at("x").least, statistics.seen.at("x").least);
      EXPECT_EQ(statistics.fields.at("x").largest, statistics.seen.at("x").largest);
      if (communicator.rank() == 0) found = statistics.seen.at("x");
    });
    return found;
  };
  EXPECT_EQ(seen(good, 1).jump, 0) << "another season, behind a gap, is no other unit";
  for (const int ranks : {1, 3}) {
    const SeenValues found = seen(lie, ranks);
    EXPECT_LT(found.jump, -250);
    EXPECT_GT(found.jump_deviations, 6);
    EXPECT_EQ(found.jumped, at("2000-01-01") + 90 * kDay);
  }
}

TEST(Statistics, AreEqualInEveryBitOnAnyNumberOfRanks) {
  Statistics alone;
  run_ranks(1, [&](Communicator& communicator) { alone = of_fixtures(communicator); });
  for (const int ranks : {2, 3, 11}) {
    std::mutex mutex;
    int seen = 0;
    run_ranks(ranks, [&](Communicator& communicator) {
      const Statistics found = of_fixtures(communicator);
      const std::lock_guard lock(mutex);
      EXPECT_TRUE(found == alone) << ranks << " ranks";
      EXPECT_TRUE(found.seen == alone.seen) << ranks << " ranks";
      ++seen;
    });
    EXPECT_EQ(seen, ranks);
  }
}

TEST(Statistics, SurviveTheirFileInEveryBit) {
  Statistics statistics;
  statistics.lead_time = 6 * kHour;
  statistics.fields["t2m"] = {"K", 280.1234567890123, 1.0 / 3, 1e-300};
  statistics.fields["t2m"].least = 1.0 / 7;
  statistics.fields["t2m"].largest = 300 + 1.0 / 7;
  EXPECT_TRUE(Statistics::from_text(statistics.to_text(), "stats.json") == statistics);
}

/// Of sequences they say so many steps, and no hours; a step was a second of earlier versions.
TEST(Statistics, OfSequencesCountSteps) {
  Statistics statistics;
  statistics.lead_time = 3;
  statistics.in_steps = true;
  const std::string text = statistics.to_text();
  EXPECT_NE(text.find("\"lead_steps\": 3"), std::string::npos) << text;
  EXPECT_EQ(text.find("lead_hours"), std::string::npos) << text;
  const Statistics again = Statistics::from_text(text, "stats.json");
  EXPECT_EQ(again.lead_time, 3);
  EXPECT_TRUE(again.in_steps);
  const Statistics before =
      Statistics::from_text("{\"lead_hours\": 0.0008333333333333334, \"fields\": {}}", "stats.json");
  EXPECT_EQ(before.lead_time, 3);
  EXPECT_FALSE(before.in_steps);
}

TEST(Statistics, MalformedFilesAreDataErrors) {
  for (const char* text :
       {"", "[]", "{", "{\"fields\": 1}", "{\"lead_hours\": 6, \"fields\": {\"t\": 1}}",
        "{\"lead_hours\": 6, \"fields\": {\"t\": {\"mean\": \"x\"}}}", "{\"fields\": {}}"}) {
    EXPECT_THROW(Statistics::from_text(text, "stats.json"), DataError) << text;
  }
  EXPECT_THROW(Statistics::load("/nowhere.json"), DataError);
  EXPECT_EQ(message_of<DataError>([] { Statistics::from_text("\x89HDF\r\n", "a.nc"); }),
            "a.nc holds no statistics: it must be an object with \"fields\"");
}

TEST(Statistics, MustFitTheData) {
  run_ranks(1, [](Communicator& communicator) {
    Dataset data(fixture_options(), fixture(""), 1, communicator);
    const auto refused = [&](const Statistics& statistics, int hours) {
      return message_of<DataError>([&] {
        check_statistics(statistics, data.channels(), data.files(), Predict::kIncrement, hours * kHour);
      });
    };
    EXPECT_NE(refused(data.statistics(), 12).find("lead_hours is 12"), std::string::npos);
    Statistics changed = data.statistics();
    changed.fields["t2m"].deviation = 1e-14;
    EXPECT_NE(refused(changed, 6).find("t2m does not vary"), std::string::npos);
    EXPECT_NE(refused(changed, 6).find("deviation 1e-14"), std::string::npos);
    changed.fields["t2m"].deviation = -1;
    EXPECT_EQ(refused(changed, 6), "the statistics of t2m give the deviation -1; it must be above 0");
    changed = data.statistics();
    changed.fields["t_850"].units = "degC";
    EXPECT_NE(refused(changed, 6).find("degC"), std::string::npos);
    changed.fields.erase("t_850");
    EXPECT_NE(refused(changed, 6).find("t_850"), std::string::npos);
  });
}

TEST(Statistics, AVariableThatIsMissingEverywhereIsSaidToBe) {
  const testing::TemporaryFolder folder;
  using Type = NetcdfOutput::Type;
  NetcdfOutput file(folder.path() + "/missing.nc");
  const int times = file.add_dimension("time", 4), rows = file.add_dimension("latitude", 3),
            columns = file.add_dimension("longitude", 5);
  const int time = file.add_variable("time", Type::kInt, {times}),
            latitude = file.add_variable("latitude", Type::kFloat, {rows}),
            longitude = file.add_variable("longitude", Type::kFloat, {columns}),
            field = file.add_variable("sst", Type::kShort, {times, rows, columns});
  file.add_text(time, "units", "hours since 2020-02-27");
  file.add_text(latitude, "units", "degrees_north");
  file.add_text(longitude, "units", "degrees_east");
  file.add_number(field, "_FillValue", std::int16_t{-1});
  file.end_definitions();
  file.write(time, std::vector<int>{0, 6, 12, 18});
  file.write(latitude, std::vector<float>{50, 49, 48});
  file.write(longitude, std::vector<float>{0, 1, 2, 3, 4});
  file.write(field, std::vector<std::int16_t>(4 * 3 * 5, -1));
  file.close();
  DataOptions options;
  options.files = {"missing.nc"};
  options.variables = {{"sst", {}}};
  options.train = {period("2020-02-27", "2020-02-27")};
  run_ranks(2, [&](Communicator& communicator) {
    EXPECT_NE(message_of<Error>([&] {
                const Dataset data(options, folder.path(), 1, communicator);
              }).find("sst is missing everywhere in data.train"),
              std::string::npos);
  });
}

/// One opening of sample data with what goes with it.
struct Opened {
  Statistics statistics;
  bool passed = false, told = false;
  double done = 0;
};

/// Four days of sample data that are written into a folder.
DataOptions days_of_sample(const std::string& folder, const char* variable) {
  SampleDataOptions sample;
  sample.months = 1;
  write_sample_data(sample, folder);
  DataOptions options;
  options.files = {folder + "/sample_2021-01.nc"};
  options.variables = {{variable, {}}};
  options.train = {period("2021-01-02", "2021-01-05")};
  return options;
}

Opened open_with_cache(const DataOptions& options, const std::string& cache, int ranks = 1,
                       bool spared = false) {
  Opened result;
  run_ranks(ranks, [&](Communicator& communicator) {
    Opened own;
    StatisticsPass pass;
    pass.cache = cache;
    pass.spared = spared;
    pass.before = [&](const SampleSource& data) {
      EXPECT_EQ(data.channels().targets.size(), 1U);
      EXPECT_GT(data.count(Split::kTrain), 0);
      EXPECT_FALSE(own.passed);
    };
    pass.tell = [&](const std::string&) { own.told = true; };
    pass.progress = [&](double done) {
      own.passed = true;
      EXPECT_GT(done, own.done);
      own.done = done;
    };
    own.statistics = Dataset(options, "", 1, communicator, pass).statistics();
    if (communicator.rank() == 0) result = own;
  });
  return result;
}

TEST(Statistics, AreKeptForRunsOfTheSameData) {
  const testing::TemporaryFolder folder, cache;
  DataOptions options = days_of_sample(folder.path(), "t2m");
  const std::string file = options.files[0];
  const Opened first = open_with_cache(options, cache.path() + "/deep/folder");
  EXPECT_TRUE(first.passed);
  EXPECT_DOUBLE_EQ(first.done, 1);
  const Opened second = open_with_cache(options, cache.path() + "/deep/folder", 3);
  EXPECT_FALSE(second.passed);
  EXPECT_TRUE(second.told);
  EXPECT_TRUE(second.statistics == first.statistics);
  EXPECT_EQ(first.statistics.seen.at("t2m").missing, 0);
  EXPECT_LT(first.statistics.seen.at("t2m").least, first.statistics.seen.at("t2m").largest);
  EXPECT_TRUE(second.statistics.seen == first.statistics.seen);
  DataOptions other = options;
  other.train = {period("2021-01-02", "2021-01-06")};
  EXPECT_TRUE(open_with_cache(other, cache.path() + "/deep/folder").passed);
  other = options;
  other.lead_time = 12 * kHour;
  EXPECT_TRUE(open_with_cache(other, cache.path() + "/deep/folder").passed);
  other = options;
  other.deaccumulate = {{"t2m", SummedSince::kDay}};
  EXPECT_TRUE(open_with_cache(other, cache.path() + "/deep/folder").passed);
  EXPECT_FALSE(open_with_cache(other, cache.path() + "/deep/folder").passed);
  other.deaccumulate = {{"t2m", SummedSince::kStart}};
  EXPECT_TRUE(open_with_cache(other, cache.path() + "/deep/folder").passed);
  other = options;
  other.fill = {{"t2m", 0}};
  const Opened filled = open_with_cache(other, cache.path() + "/deep/folder");
  EXPECT_TRUE(filled.passed);
  EXPECT_TRUE(open_with_cache(other, cache.path() + "/deep/folder").statistics == filled.statistics);
  EXPECT_EQ(Statistics::from_text(filled.statistics.to_text(), "it").fields.at("t2m").fill,
            std::optional(0.0));
  other.transforms = {{"t2m", {.kind = TransformKind::kNone}}};
  EXPECT_EQ(open_with_cache(other, "").statistics.fields.at("t2m").fill, std::optional(0.0));
  EXPECT_TRUE(open_with_cache(options, "").passed);
  // A file that was written again is another one; so is what is kept when it is damaged.
  std::filesystem::last_write_time(file, std::filesystem::last_write_time(file) + std::chrono::seconds(1));
  EXPECT_TRUE(open_with_cache(options, cache.path() + "/deep/folder").passed);
  EXPECT_FALSE(open_with_cache(options, cache.path() + "/deep/folder").passed);
  for (const auto& entry : std::filesystem::directory_iterator(cache.path() + "/deep/folder"))
    testing::put_text(entry.path().string(), "{\"of\":");
  const Opened again = open_with_cache(options, cache.path() + "/deep/folder");
  EXPECT_TRUE(again.passed);
  EXPECT_TRUE(again.statistics == first.statistics);
}

/// Winds from the east and south under a square root, beside temperatures in kelvin, of which none is below
/// 0.
TEST(Statistics, SayHowMuchLiesBelowTheDomainOfATransform) {
  const testing::TemporaryFolder folder, cache;
  DataOptions options = days_of_sample(folder.path(), "u10");
  const SeenValues open = open_with_cache(options, cache.path()).statistics.seen.at("u10");
  EXPECT_EQ(open.below, 0) << "nothing is cut without a transform";
  ASSERT_LT(open.least, -1);
  options.transforms = {{"u10", {TransformKind::kSqrt}}};
  for (const int ranks : {1, 3}) {
    const Opened cut = open_with_cache(options, "", ranks);
    const SeenValues& seen = cut.statistics.seen.at("u10");
    EXPECT_DOUBLE_EQ(seen.lowest, open.least) << ranks << " ranks";
    EXPECT_GT(seen.below, 0.01);
    EXPECT_LT(seen.below, 0.9);
    const Opened computed = open_with_cache(options, cache.path(), ranks);
    EXPECT_EQ(computed.passed, ranks == 1) << "those of a run before are kept";
    EXPECT_TRUE(computed.statistics.seen.at("u10") == seen);
  }
  options.variables = {{"t2m", {}}};
  options.transforms = {{"t2m", {TransformKind::kSqrt}}};
  const SeenValues warm = open_with_cache(options, "").statistics.seen.at("t2m");
  EXPECT_EQ(warm.below, 0);
  EXPECT_EQ(warm.lowest, 0);
}

TEST(Statistics, OfAPassThatIsSparedAreNeutralAndNotKept) {
  const testing::TemporaryFolder folder, cache;
  DataOptions options = days_of_sample(folder.path(), "t2m");
  const Opened spared = open_with_cache(options, cache.path(), 2, true);
  EXPECT_FALSE(spared.passed);
  EXPECT_TRUE(spared.told);
  ASSERT_EQ(spared.statistics.fields.size(), 1U);
  EXPECT_TRUE(spared.statistics.fields.at("t2m") == (FieldStatistics{"", 0, 1, 1}));
  EXPECT_TRUE(spared.statistics.seen.empty());
  const Opened computed = open_with_cache(options, cache.path());
  EXPECT_TRUE(computed.passed);
  EXPECT_FALSE(computed.told);
  const Opened kept = open_with_cache(options, cache.path(), 2, true);
  EXPECT_TRUE(kept.told);
  EXPECT_TRUE(kept.statistics == computed.statistics);
}

TEST(Statistics, ThatAreKnownAreTakenWhereThePassIsSpared) {
  std::string told;
  StatisticsPass pass;
  pass.tell = [&](const std::string& line) { told += line; };
  Statistics known;
  known.fields["a"] = {"K", 280, 20, 3};
  std::vector<Channel> channels(2);
  channels[0].field.variable = "a";
  channels[1].field.variable = "b";
  const Statistics found = spared_statistics(pass, channels, 6 * kHour, &known);
  EXPECT_EQ(found.lead_time, 6 * kHour);
  EXPECT_TRUE(found.fields.at("a") == known.fields.at("a"));
  EXPECT_TRUE(found.fields.at("b") == (FieldStatistics{"", 0, 1, 1}));
  EXPECT_TRUE(told.ends_with("stand for those of 1 variable")) << told;
  told.clear();
  channels.pop_back();
  spared_statistics(pass, channels, 6 * kHour, &known);
  EXPECT_EQ(told, "");
}

/// The chunks of a store in a folder can be written anew, and neither it nor its description tells.
TEST(Statistics, OfAStoreInAFolderAreNotKept) {
  const testing::TemporaryFolder cache;
  StatisticsPass pass;
  pass.cache = cache.path();
  int computed = 0;
  run_ranks(1, [&](Communicator& communicator) {
    for (int i = 0; i < 2; ++i) {
      cached_statistics(pass, {cache.path()}, Json::object(), communicator, [&] {
        ++computed;
        return Statistics{};
      });
    }
  });
  EXPECT_EQ(computed, 2);
}

/// A damaged file of statistics is none: wrong ones would be believed.
TEST(Statistics, ThatWereChangedAfterTheyWereKeptAreComputedAnew) {
  const testing::TemporaryFolder folder;
  const std::string data = folder.path() + "/data", cache = folder.path() + "/cache";
  std::ofstream(data) << "data";
  StatisticsPass pass;
  pass.cache = cache;
  int computed = 0;
  const auto found = [&] {
    Statistics statistics;
    run_ranks(1, [&](Communicator& communicator) {
      statistics = cached_statistics(pass, {data}, Json::object(), communicator, [&] {
        ++computed;
        Statistics of_data;
        of_data.fields["a"] = {"K", 280.25, 20, 3};
        return of_data;
      });
    });
    return statistics.fields.at("a");
  };
  const FieldStatistics first = found();
  EXPECT_TRUE(found() == first);
  EXPECT_EQ(computed, 1);
  const std::string kept = std::filesystem::directory_iterator(cache)->path().string();
  std::stringstream text;
  text << std::ifstream(kept).rdbuf();
  std::string changed = text.str();
  ASSERT_NE(changed.find("280.25"), std::string::npos) << changed;
  std::ofstream(kept) << changed.replace(changed.find("280.25"), 6, "220.25");
  EXPECT_TRUE(found() == first);
  EXPECT_EQ(computed, 2);
}

TEST(Statistics, WhatCostsLittleIsCheckedBeforeThePass) {
  run_ranks(2, [](Communicator& communicator) {
    StatisticsPass pass;
    pass.before = [&](const SampleSource&) { together(communicator, [] { throw ConfigError("refused"); }); };
    pass.progress = [](double) { ADD_FAILURE() << "data was read for statistics"; };
    EXPECT_THROW(Dataset(fixture_options(), fixture(""), 1, communicator, pass), AgreedError);
  });
}

}  // namespace statistics_test
}  // namespace jigsaw
